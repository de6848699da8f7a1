"""The planted faults and the unchanged programs, run once in processes of their own; a test for each fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.planted.faults import FAULTS
from tests.planted.known import MISBLAMED, MISSED
from tests.planted.model import FAMILIES, PROGRAMS, Fault, Outcome, Score
from tests.planted.rewrites import REWRITES
from tests.planted.runner import run
from tests.planted.scoring import failures, markdown, summary

_FAULT = Fault(name="f", kind="memory", program="p", edits=(("a", "b"),), moves=frozenset({"temp_bytes"}), culprit="x")


@pytest.fixture(scope="module")
def score():
    """Everything that the quick run finds."""
    return run(quick=True)


def _all_but(*known):
    """Every fault, those that today's engine is known to get wrong marked so."""
    reasons = {name: reason for table in known for name, reason in table.items()}
    return [
        pytest.param(
            fault.name,
            id=fault.name.replace(" ", "-"),
            marks=[pytest.mark.xfail(reason=reasons[fault.name], raises=AssertionError)]
            if fault.name in reasons
            else [],
        )
        for fault in FAULTS
    ]


def _outcome(score, name):
    outcome = next(outcome for outcome in score.faults if outcome.name == name)
    if outcome.missing:
        pytest.skip(outcome.missing)
    return outcome


@pytest.mark.parametrize("name", _all_but(MISSED))
def test_a_fault_is_caught(score, name):
    """A planted mistake turns its case red, by a fact that the mistake moves."""
    outcome = _outcome(score, name)
    assert outcome.caught, f"{outcome.status} {outcome.moved}: {outcome.line}; {outcome.why}"


@pytest.mark.parametrize("name", _all_but(MISSED, MISBLAMED))
def test_the_cause_of_a_fault_comes_first(score, name):
    """The first culprit line names what was planted: the argument, the operation, the parameter, the line."""
    outcome = _outcome(score, name)
    assert outcome.blamed, f"{outcome.line}; {outcome.why}"


def test_no_unchanged_program_alarms(score):
    """Renamed, reordered, reformatted and differently spelled programs are left alone, at least 200 of them."""
    assert len(score.unchanged) >= 200
    assert [f"{o.name} of {o.program}: {o.why}" for o in score.unchanged if not o.caught] == []


def test_every_change_was_tried_on_some_program(score):
    """No change of source is listed without ever applying."""
    assert {outcome.name for outcome in score.unchanged} == set(REWRITES)


def test_every_program_and_family_has_a_fault():
    """No base program and no family stands there for nothing, and what is known to fail exists."""
    assert {fault.program for fault in FAULTS} == {file.stem for file in PROGRAMS.glob("*.py")}
    assert {fault.kind for fault in FAULTS} == set(FAMILIES)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert MISSED.keys() | MISBLAMED.keys() <= {fault.name for fault in FAULTS}
    assert not MISSED.keys() & MISBLAMED.keys()


@pytest.mark.parametrize(
    "wrong", [{"culprit": ""}, {"edits": ()}, {"moves": frozenset()}, {"status": "INVALID"}, {"kind": "odd"}]
)
def test_a_fault_that_no_outcome_could_miss_is_refused(wrong):
    """Without an edit, a culprit or a fact that must move, a fault would prove nothing."""
    with pytest.raises(ValueError, match="expected"):
        replace(_FAULT, **wrong)


def test_the_score_counts_what_was_not_run_apart():
    """A fault that cannot be run is neither caught nor missed, and is said."""
    right = Outcome(name="a", kind="memory", program="p", status="REGRESSED", caught=True, blamed=True, line="temp")
    blamed = replace(right, name="b", blamed=False, line="cause | unknown", why="expected /x/")
    later = Outcome(name="c", kind="host", program="q", missing="Computation has no field 'host' yet")
    quiet = Outcome(name="moved", kind="unchanged", program="p", caught=True, identical=True)
    alarm = replace(quiet, caught=False, identical=False, why="REGRESSED traces")
    found = Score(faults=(right, blamed, later), unchanged=(quiet, alarm), seconds=3.2, versions="jax 1", absent=("x",))
    assert summary(found) == [
        "faults caught            2 of 2 (100%)",
        "first culprit line right 1 of 2 (50%); by its first clause alone 0 of 2 (0%)",
        "unchanged, no alarm      1 of 2 (50%); 1 found identical, so that no clock is asked",
        "not run yet              1: Computation has no field 'host' yet",
        "facts asked for that the engine does not have yet: x",
        "jax 1, 3 s",
    ]
    assert [text.split("  ")[0] for text in failures(found)] == ["MISBLAMED", "ALARM"]
    page = markdown(found)
    assert "| memory | b | misblamed | – | `cause ¦ unknown` |" in page
    assert "| host | c | not run | – | – |" in page
    assert "- moved of p.py: REGRESSED traces" in page
