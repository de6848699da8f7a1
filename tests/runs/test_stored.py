"""Stored times through the real plugin: what is recorded, what is refused, and what judges where no duel can."""

import shutil
from dataclasses import replace
from math import exp
from unittest.mock import Mock

import pytest
from support.corpora import nightly
from support.factories import session
from support.fakes import BUSY, CALL_NS, QUIET, Lab, folder_here, hardware_slug
from support.lines import line_here
from support.projects import TALK, model

from jaxgate.engine.run.session import GateSession
from jaxgate.ext.times import sessions as times_of_sessions
from jaxgate.ext.times.kept import TimesStore
from jaxgate.keep.baselines import BaselineStore, save_baseline
from jaxgate.model.outcome import UsageError
from jaxgate.observe.machine.environment import first_device
from jaxgate.plugin.stash import SETTINGS
from jaxgate.report.units import show

MODEL = model("jnp.ones((8, 8))", wave="jnp.exp(-x)")
SLUG = hardware_slug()
FOLDER = folder_here()
TIMES = f"baselines/{FOLDER}/times/model/wave.json"


@pytest.fixture
def accepted(project, lab, monkeypatch):
    """A project on registered hardware, on a quiet machine; records a baseline, and sessions with these times."""

    def accept(text=MODEL, *times_ns):
        project.write("test_model.py", text).record()
        if times_ns:
            lab.fresh_ns = list(times_ns)
            assert record_times(project, len(times_ns)).code == 0
        lab.recorded.clear()
        lab.looked.clear()

    return accept


@pytest.fixture
def recorded(project, accepted):
    """The same with a baseline and no session."""
    accepted()
    return project


def record_times(project, count, *arguments):
    """Store the times of so many processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times_of_sessions, "SESSIONS", count)
        return project.run(*arguments, "--perf-update=times")


def sessions(project):
    """What is stored of the case."""
    return TimesStore(project.path / "baselines", line_here()).load(first_device(), "model/wave").sessions


def around(spread, count=10):
    """Times whose log spread is a little more than this: half above, half below 10 ms."""
    return [round(CALL_NS * exp(spread if number % 2 else -spread)) for number in range(count)]


# Recording


def test_sessions_are_stored_beside_the_baselines(recorded, lab, monkeypatch):
    """One file for each case, one session for each process; what the machine looked like is printed and kept.

    Nothing was asked to be judged, which is not red under CI. Later sessions are added, each look after one asks for the
    steal since it began, and paths and expressions go on to the fresh processes.
    """
    lab.fresh_ns = around(0.005, 4)
    monkeypatch.setenv("CI", "true")
    result = record_times(recorded, 4)
    assert result.code == 0
    assert len(lab.recorded) == 4
    assert [one.run_ns for one in sessions(recorded)] == around(0.005, 4)
    assert {one.machine for one in sessions(recorded)} == {f"before: {QUIET}; after: {QUIET}"}
    result.shows(
        "before    load 0.1 of 2 cores, 0.0 at work, steal 0.0%, clock unknown",
        "after 4   load 0.1 of 2 cores",
        "RECORDED  model/wave  10.1 ms  4 sessions over 1 day, spread 0.6%, sees 4.6%",
        "1 case: 1 RECORDED",
        "Recorded 4 of 4 sessions under baselines; commit it.",
    )
    assert "not judged" not in result.text
    lab.looked.clear()
    record_times(recorded, 1, "test_model.py", "-k", "wave").shows("5 sessions over 1 day")
    assert [sorted(how) for how in lab.looked] == [[], ["after_work", "since"]]
    assert (lab.recorded[-1].paths, lab.recorded[-1].keyword) == (("test_model.py",), "wave")


def test_a_noisy_case_is_proposed_for_ungating(recorded, lab):
    """Recorded, listed as what it is, and not red: a person decides."""
    lab.fresh_ns = around(0.05, 4)
    result = record_times(recorded, 4)
    assert result.code == 0
    result.shows(
        "NOISY  model/wave  10.5 ms  4 sessions over 1 day, spread 5.8%: too noisy to gate, 3% may be",
        "proposed for un-gating, a person decides",
    )


def test_a_session_that_was_disturbed_is_dropped(recorded, lab):
    """The one before it stays, the recording ends with exit code 2."""
    lab.looks = [QUIET, QUIET, BUSY]
    result = record_times(recorded, 3)
    assert result.code == 2
    assert (len(lab.recorded), len(sessions(recorded))) == (2, 1)
    result.shows("Recorded 1 of 3 sessions", "REFUSED: load 1.9")


@pytest.mark.parametrize("lent", [False, True], ids=["none", "on other hardware"])
def test_a_case_without_a_baseline_is_refused(recorded, lab, lent):
    """Red, with the command; nothing is stored. A baseline of other hardware is not one of this."""
    lab.accepted = recorded.path / "there"
    shutil.copytree(recorded.path / "baselines", lab.accepted)
    if lent:
        recorded.lend("model/wave")
    else:
        recorded.baseline("model/wave").unlink()
    result = record_times(recorded, 1)
    assert result.code == 1
    assert not (recorded.path / "baselines" / FOLDER / "times").exists()
    result.shows(
        "REFUSED  model/wave", "it has no baseline on this hardware with this jax; record that first: --perf-update"
    )


def other(**fingerprints):
    """A fresh process whose baseline has another fingerprint."""
    return lambda lab: setattr(lab, "breaks", lambda content: content["fingerprints"].update(fingerprints))


def says(**failed):
    """A fresh process in which these tests failed, and none was recorded."""
    found = {f"test_model.py::{name}": why for name, why in failed.items()}
    return lambda lab: lab.instruments.update(record=lambda *_: found)


REFUSED = {
    "another environment": (MODEL, Lab.change_environment, "its environment changed since the baseline; record that"),
    "Python that was edited": (TALK, other(source="edited"), "its source (it calls Python) changed since the baseline"),
    "a test that fails there": (MODEL, says(test_wave="INVALID  wave"), "failed in a session: INVALID  wave"),
    "nothing recorded": (MODEL, says(), "No session recorded a case: nothing is stored."),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_be_held_against_something_else_is_refused(project, lab, accepted, what):
    """Its time, or its limit, would be that of two programs or environments: red, and nothing is stored."""
    text, change, words = REFUSED[what]
    accepted(text)
    change(lab)
    result = record_times(project, 1)
    assert result.code == 1
    assert sessions(project) == ()
    result.shows(words)


def test_virtual_devices_are_refused(recorded, lab, monkeypatch):
    eight = SLUG.removesuffix("1") + "8"
    lab.breaks = lambda content: content["hardware"].update(devices=8)
    record = lab.instruments["record"]

    def virtual(side, chosen, into):
        record(side, chosen, into)
        (into / FOLDER).rename(into / FOLDER.replace(SLUG, eight))
        return {}

    lab.instruments["record"] = virtual
    result = record_times(recorded, 1)
    assert result.code == 1
    result.shows("virtual CPU devices share their cores, so no clock judges them")


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [("import no_such_module", 2, "no_such_module"), ("def test_plain(): pass", 4, "none of the selected tests gates")],
)
def test_what_cannot_be_collected_or_does_not_gate_is_not_recorded(project, lab, text, code, says):
    result = record_times(project.write("test_model.py", text), 1)
    assert (result.code, len(lab.recorded)) == (code, 0)
    result.shows(says)


# Judging: the environment changed


def test_a_slow_environment_is_seen_and_repeated(project, lab, accepted):
    """The program is the same, a duel with itself sees nothing; two fresh processes agree: SLOWER, red."""
    accepted(MODEL, *around(0.005))
    lab.change_environment()
    lab.call_ns, lab.fresh_ns = round(1.2 * CALL_NS), [round(1.1 * CALL_NS), round(1.3 * CALL_NS)]
    result = project.run("-v")
    assert result.code == 1
    assert len(lab.recorded) == 2
    assert lab.recorded[-1].paths == ("test_model.py::test_wave",)
    assert lab.looked == [{"after_work": True, "holds_device": True}] * 2
    result.shows(
        "test_model.py::test_wave SUSPECT",
        "SLOWER  model/wave  on ",
        "a call takes 12 ms against 10 ms = 1.20 ×, allowed 10.3 ms",
        "stored times: 10 sessions over 1 day, limit +3.0% (environment changed [XLA_FLAGS absent → --xla_new]); in fresh processes 1.100 ×, 1.300 ×",
        "XLA_FLAGS absent → --xla_new",
        "comes from: environment",
    )


@pytest.mark.parametrize("fresh", [[1.0], [1.2, 1.0]], ids=["the first", "the second"])
def test_one_fresh_process_that_disagrees_takes_it_back(project, lab, accepted, fresh):
    accepted(MODEL, *around(0.005))
    lab.change_environment()
    lab.call_ns, lab.fresh_ns = round(1.2 * CALL_NS), [round(ratio * CALL_NS) for ratio in fresh]
    result = project.run()
    assert result.code == 0
    assert len(lab.recorded) == len(fresh)
    result.shows(f"but it was not confirmed by fresh process {len(fresh)} of 2")
    result.shows("1 case: 1 UNDECIDED")


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (around(0.005, 2), "stored times: 2 sessions over 1 day, 3 are needed"),
        (around(0.05), "stored times: 10 sessions over 1 day, spread 5.3%: too noisy to gate"),
    ],
    ids=["two", "noisy"],
)
def test_where_they_do_not_gate_nothing_is_same(project, lab, accepted, times, why):
    """A doubled time is not called SAME by a duel of a program with itself: UNDECIDED, and why."""
    accepted(MODEL, *times)
    lab.change_environment()
    lab.call_ns = 2 * CALL_NS
    result = project.run()
    assert (result.code, len(lab.recorded)) == (0, 0)
    result.shows("1 case: 1 UNDECIDED", "--xla_new] and a duel of a program with itself cannot show that", why)


def test_sessions_of_another_baseline_do_not_count(project, lab, accepted):
    """Accepting a new environment leaves the old times behind, and says so."""
    accepted(MODEL, *around(0.005))
    project.edit_baseline("model/wave", environment={"jaxlib": "0.9"})
    lab.call_ns = 2 * CALL_NS
    project.run().shows("1 UNDECIDED", "no session, 3 are needed (10 of another baseline)")


# Fail closed


@pytest.fixture
def suspect(project, lab, accepted):
    """A case that is 1.2 times as slow in a new environment."""
    accepted(MODEL, *around(0.005))
    lab.change_environment()
    lab.call_ns = round(1.2 * CALL_NS)
    return project


FAILED_REPEATS = {
    "a busy machine": (lambda lab: lab.looks.extend([QUIET, BUSY]), "could not be confirmed: the machine is not quiet"),
    "another program": (other(program="f" * 32), "a fresh process ran another program, or in another environment"),
    "it fails": (says(test_wave="out of memory"), "it could not be confirmed: out of memory"),
    "it cannot start": (
        lambda lab: lab.instruments.update(record=Mock(side_effect=UsageError("no such file"))),
        "it could not be confirmed: a fresh process failed: no such file",
    ),
    "the clock stands still": (lambda lab: setattr(lab, "call_ns", 0), "expected a positive time"),
}


@pytest.mark.parametrize("what", FAILED_REPEATS)
def test_what_cannot_be_confirmed_is_invalid(suspect, lab, what):
    """Not SLOWER, and red with the reason; where the machine is to blame no case is accused: exit code 2."""
    change, words = FAILED_REPEATS[what]
    change(lab)
    result = suspect.run()
    assert result.code == (2 if "machine" in what else 1)
    result.shows("INVALID  model/wave", words)


def test_damaged_times_are_invalid(suspect):
    """Not passed over; the file is named, with the command that mends it. A recording leaves what somebody can still mend."""
    path = suspect.path / TIMES
    path.write_text(path.read_text()[:50])
    result = suspect.run()
    assert result.code == 1
    result.shows("INVALID  model/wave", "reading the stored times", f"git checkout -- {TIMES}")
    path.write_text("{")
    result = record_times(suspect, 1)
    assert (result.code, path.read_text()) == (1, "{")
    result.shows("REFUSED  model/wave")


# For real


def test_one_real_session(project, monkeypatch):
    """A process of its own is asked for the hardware, another records a tiny function; a time is stored."""
    project.instruments.update(look=lambda *_, **__: QUIET)
    project.write("test_model.py", MODEL).record()
    result = record_times(project, 1)
    baseline = BaselineStore(project.path / "baselines", line_here()).load(first_device(), "model/wave").baseline
    assert result.code == 0
    (only,) = sessions(project)
    result.shows(f"RECORDED  model/wave  {show('run_ns', only.run_ns)}  1 session over 1 day, 3 are needed")
    assert only.fingerprints == baseline.fingerprints
    assert "cores" in only.machine


@nightly
def test_a_real_repeat(project, monkeypatch):
    """A real process runs the one test again, and agrees that a call takes more than a nanosecond."""
    project.instruments.update(processes=1, look=lambda *_, **__: QUIET)
    project.write("test_model.py", MODEL).record()
    hardware = first_device()
    store, times = (
        BaselineStore(project.path / "baselines", line_here()),
        TimesStore(project.path / "baselines", line_here()),
    )
    accepted = store.load(hardware, "model/wave").baseline
    accepted = replace(accepted, environment={**accepted.environment, "jaxlib": "0.9"})
    save_baseline(store.root, accepted)
    for _ in range(10):
        stored = session(1.0, fingerprints=accepted.fingerprints, environment=accepted.environment)
        times.add(hardware, "model/wave", stored)
    result = project.run()
    assert result.code == 1
    result.shows("SLOWER  model/wave", "stored times: 10 sessions over 1 day, limit +15.0%", "in fresh processes")


@pytest.mark.parametrize("elsewhere", [{"against": "0123456789"}, {"against_env": ("XLA_FLAGS=",)}])
def test_another_side_than_the_baselines_is_not_judged_by_times(project, elsewhere):
    """The stored times are those of the stored baselines."""
    settings = project.pytester.parseconfigure().stash[SETTINGS]
    assert GateSession(settings, project.path).stored_times._times is not None
    assert GateSession(replace(settings, **elsewhere), project.path).stored_times._times is None
