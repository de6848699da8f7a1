"""What an upgrade launches: the facts of both sides once, then only what differs, for as long as that is open."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.factories import ENVIRONMENT, FINGERPRINTS, baseline

from jaxgate.ext.upgrade.environment import EnvironmentSpec
from jaxgate.ext.upgrade.judge import judge_upgrade
from jaxgate.ext.upgrade.model import Answer, CaseNote, Section, TestNote
from jaxgate.ext.upgrade.notes import add_note
from jaxgate.ext.upgrade.runs import MAX_DEATHS, WORSE_LAUNCHES, record_upgrade
from jaxgate.keep.baselines import save_baseline
from jaxgate.model.numbers import Samples
from jaxgate.model.outcome import UsageError
from jaxgate.processes.pytest_child import BrokenRecordingError, Selection
from jaxgate.settings import NOTES_INTO

KNOWN = replace(FINGERPRINTS, executable="e" * 32)
OTHER = replace(FINGERPRINTS, executable="f" * 32)
CASES = {"scan/same": KNOWN, "scan/slow": OTHER, "scan/fast": OTHER, "scan/even": OTHER}
TESTS = {case: f"test_scan.py::test_{case.partition('/')[2]}" for case in CASES}
FACTORS = {"scan/slow": 2.0, "scan/fast": 0.5, "scan/even": 1.0}


class Recorder:
    """Records cases as processes of two environments would; one of them dies where it is told to."""

    def __init__(self, dies_in=(), records=tuple(CASES), loses=None):
        self.launched: list[tuple[str, tuple[str, ...]]] = []
        self.dies_in, self.records, self.loses = set(dies_in), records, loses or {}

    def __call__(self, side, chosen, into):
        name = "there" if "there" in into.name else "here"
        notes = side.environment.get(NOTES_INTO)
        wanted = [case for case in self.records if not chosen.paths or TESTS[case] in chosen.paths]
        if notes is None:
            self.launched.append((name, chosen.paths))
        if into.name in self.loses:
            if isinstance(self.loses[into.name], Exception):
                raise self.loses[into.name]
            return self.loses[into.name]
        for case in wanted:
            test = TESTS[case]
            if notes:
                add_note(Path(notes), test)
            if name == "there" and test in self.dies_in:
                raise BrokenRecordingError("it died", -6)
            slower = FACTORS.get(case, 1.0) if name == "there" else 1.0
            time = Samples(bursts_ns=(round(1_000_000 * slower) + len(self.launched),), calls_per_burst=1)
            save_baseline(
                into,
                baseline(
                    case=case,
                    test=test,
                    fingerprints=CASES[case] if name == "there" else KNOWN,
                    environment={**ENVIRONMENT, "jax": "0.10.3"} if name == "there" else ENVIRONMENT,
                    samples=None if notes else time,
                ),
            )
            if notes:
                add_note(Path(notes), CaseNote(case=case, test=test))
                add_note(Path(notes), TestNote(test=test, outcome="passed"))
        return {}


def recorded(tmp_path, recorder, tests=None):
    """Everything that is recorded of the four cases, in an environment that is this one."""
    return record_upgrade(
        tmp_path,
        EnvironmentSpec(python=Path(sys.executable)),
        Selection((), "", ""),
        tests or [*TESTS.values()],
        launches=5,
        into=tmp_path,
        cache=tmp_path / "kept",
        progress=lambda _: None,
        here={"HOME": "h"},
        record=recorder,
        seed=1,
    )


def test_only_what_differs_is_launched_and_only_as_long_as_it_is_open(tmp_path):
    """An equal executable never is; an even time once; a faster one as often as asked for; a slower one eight times."""
    recorder = Recorder()
    found = recorded(tmp_path, recorder)
    counts = {case: len(taken.here) for case, taken in found.launches.items()}
    assert counts == {"scan/slow": WORSE_LAUNCHES, "scan/fast": 5, "scan/even": 1}
    assert all(len(taken.here) == len(taken.there) for taken in found.launches.values())
    assert found.launches["scan/slow"].here[0].samples.run_ns > 1_900_000  # the other environment is what is judged
    rounds = [{name for name, _ in recorder.launched[k : k + 2]} for k in range(0, len(recorder.launched), 2)]
    assert rounds == [{"here", "there"}] * WORSE_LAUNCHES
    assert TESTS["scan/same"] not in {path for _, paths in recorder.launched for path in paths}


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        ({TESTS["scan/slow"]: "ValueError: only when called"}, "launch 3 there: ValueError: only when called"),
        ({}, "launch 3 there: it recorded nothing, and nothing says why"),
        (BrokenRecordingError("it died", -11), "launch 3 there: its process ended with the signal SIGSEGV"),
    ],
)
def test_a_launch_that_fails_leaves_no_launches_and_says_why(tmp_path, lost, why):
    """What the other launches say is not taken for all of them: the case is not known to be as fast there."""
    found = recorded(tmp_path, Recorder(loses={"launch-there-2": lost}))
    taken = found.launches["scan/slow"]
    assert (taken.here, taken.there, taken.why_not) == ((), (), why)
    assert not found.launches["scan/even"].why_not
    report = judge_upgrade(found.here, found.there, found.launches, tests=tuple(TESTS.values()), other="A=1")
    assert report.answer is not Answer.YES
    unknown = {group.what: group.cases for group in report.groups if group.section is Section.UNKNOWN}
    assert "scan/slow" in unknown[why]


def test_a_test_in_which_the_process_dies_is_noted_and_the_others_are_recorded(tmp_path):
    found = recorded(tmp_path, Recorder(dies_in=[TESTS["scan/slow"]]))
    assert sorted(found.there.baselines) == ["scan/even", "scan/fast", "scan/same"]
    note = found.there.notes.tests[TESTS["scan/slow"]]
    assert (note.outcome, note.why) == ("failed", "its process ended with the signal SIGABRT")


def test_a_side_that_dies_again_and_again_and_one_without_cases_are_given_up(tmp_path):
    """Nothing is compared then, and the reason is said."""
    everywhere = [f"t.py::test_{number}" for number in range(MAX_DEATHS + 2)]

    def dies(side, chosen, into):
        test = (chosen.paths or everywhere)[0]
        add_note(Path(side.environment[NOTES_INTO]), test)
        raise BrokenRecordingError("it died", 134)

    with pytest.raises(UsageError, match=f"{MAX_DEATHS + 1} processes died"):
        recorded(tmp_path, dies, everywhere)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no case was recorded here: no test gates"):
        recorded(tmp_path / "empty", Recorder(records=()))
