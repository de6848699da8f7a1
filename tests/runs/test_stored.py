"""Stored times through the real plugin: what is recorded, what is refused, and what judges where no duel can."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp

import jax
import pytest
import scipy.special  # noqa: F401 - pytester forgets what a run imports, and compiled modules must not load twice
from support.factories import session

from jaxgate.engine.session import GateSession
from jaxgate.judge import decide
from jaxgate.keep import BaselineStore, TimesStore
from jaxgate.model import Duel, Samples, UsageError
from jaxgate.observe.machine import MachineState, environment
from jaxgate.plugin.session_start import SETTINGS
from jaxgate.report import show

CALL_NS = 10_000_000
MODEL = """
import jax, jax.numpy as jnp

def wave(x):
    return jnp.exp(-x)

def test_wave(gate):
    gate(wave, jnp.ones((8, 8)))
"""
TALK = """
import jax, jax.numpy as jnp

def talk(x):
    jax.debug.callback(lambda value: None, x[0, 0])
    return jnp.exp(-x)

def test_talk(gate):
    gate(talk, jnp.ones((8, 8)))
"""
QUIET = MachineState(cores=2, load=0.1, busy_cores=0.0, steal=0.0, clock=None)
BUSY = MachineState(cores=2, load=1.9, busy_cores=1.9, steal=0.05, clock=None)
ENVIRONMENT = environment.read_environment
"""The real one, before a test replaces it."""


class Lab:
    """A project on registered hardware whose clock, machine and fresh processes are the test's."""

    def __init__(self, project, monkeypatch):
        self.project, self.path, self.monkeypatch = project, project.path, monkeypatch
        self.slug = environment.first_device().slug
        self.now_ns = CALL_NS
        self.fresh_ns = []  # of the fresh processes, one after the other; the same as here once they are used up
        self.looks = []  # the same for the looks at the machine; quiet once they are used up
        self.asked = []
        self.recordings = 0
        self.breaks = None  # what a fresh process does to its baseline
        monkeypatch.setenv("JAXGATE_QUIET", self.slug)
        monkeypatch.setattr("jaxgate.observe.measure.sample", self._sample)
        project.instruments.update(
            record=self._record, look=self._look, find_hardware=lambda project: environment.first_device()
        )

    def _sample(self, *args, **kwargs):
        from jaxgate.observe.execute import Sampled

        return Sampled(Samples(bursts_ns=(self.now_ns,) * 3, calls_per_burst=1), 0, 0)

    def _look(self, platform, **how):
        assert platform == "cpu"
        self.asked.append(how)
        return self.looks.pop(0) if self.looks else QUIET

    def _record(self, side, chosen, into):
        """What a fresh process would have recorded: the accepted baselines, in today's environment."""
        self.recordings += 1
        run_ns = self.fresh_ns.pop(0) if self.fresh_ns else self.now_ns
        self.chosen = chosen
        for path in (self.path / "baselines" / self.slug).glob("*/*.json"):
            content = json.loads(path.read_text())
            if chosen.paths and chosen.paths[0].partition("::")[2] not in ("", content["test"].partition("::")[2]):
                continue
            content["environment"] = environment.read_environment(jax.devices()[0])
            content["samples"] = {"bursts_ns": [run_ns] * 3, "calls_per_burst": 1, "contract": "pipelined"}
            if self.breaks:
                self.breaks(content)
            copy = into / path.relative_to(self.path / "baselines")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(json.dumps(content))
        return {}

    def new_environment(self):
        """From now on a flag is set."""

        def changed(device):
            return {**ENVIRONMENT(device), "XLA_FLAGS": "--xla_new"}

        self.monkeypatch.setattr("jaxgate.observe.measure.read_environment", changed)
        self.monkeypatch.setattr("jaxgate.observe.machine.environment.read_environment", changed)

    def accepted(self, text=MODEL, *times_ns):
        """Record the baseline of a model, and sessions with these times."""
        self.project.write("test_model.py", text)
        self.project.record()
        if times_ns:
            self.fresh_ns = list(times_ns)
            assert self.project.run(f"--perf-record-times={len(times_ns)}").code == 0
        self.recordings, self.asked = 0, []

    def run(self, *arguments):
        return self.project.run(*arguments)

    def sessions(self, case="model/wave"):
        """What is stored of a case."""
        return TimesStore(self.path / "baselines").load(environment.first_device(), case).sessions


@pytest.fixture
def lab(project, monkeypatch):
    """A quiet machine."""
    return Lab(project, monkeypatch)


def around(spread, count=10):
    """Times whose log spread is a little more than this: half above, half below 10 ms."""
    return [round(CALL_NS * exp(spread if number % 2 else -spread)) for number in range(count)]


# Recording


def test_sessions_are_stored_beside_the_baselines(lab):
    """One file for each case, one session for each process; what the machine looked like is printed and kept."""
    lab.accepted()
    lab.fresh_ns = around(0.005, 4)
    result = lab.run("--perf-record-times=4")
    assert result.code == 0
    assert lab.recordings == 4
    assert [one.run_ns for one in lab.sessions()] == around(0.005, 4)
    assert {one.machine for one in lab.sessions()} == {f"before: {QUIET}; after: {QUIET}"}
    assert {one.objections for one in lab.sessions()} == {()}
    result.shows(
        "before    load 0.1 of 2 cores, 0.0 at work, steal 0.0%, clock unknown",
        "after 4   load 0.1 of 2 cores",
        "RECORDED  model/wave  10.1 ms  4 sessions over 1 day, spread 0.6%, sees 4.6%",
        "1 case: 1 RECORDED",
        "Recorded 4 of 4 sessions under baselines; commit it.",
    )
    assert "not judged" not in result.text


def test_later_sessions_are_added(lab):
    """And each look after a session asks for the steal since it began."""
    lab.accepted(MODEL, *around(0.005, 2))
    result = lab.run("--perf-record-times=1")
    assert len(lab.sessions()) == 3
    assert [sorted(how) for how in lab.asked] == [[], ["after_work", "since"]]
    result.shows("3 sessions over 1 day")


def test_recording_judges_nothing_and_is_not_red_under_ci(lab, monkeypatch):
    """A strict run in which no gate was judged fails; this one was not asked to judge."""
    lab.accepted()
    monkeypatch.setenv("CI", "true")
    assert lab.run("--perf-record-times=1").code == 0


def test_only_the_selection_is_recorded(lab):
    """Paths and expressions go on to the fresh processes."""
    lab.accepted()
    lab.run("test_model.py", "-k", "wave", "--perf-record-times=1")
    assert (lab.chosen.paths, lab.chosen.keyword) == (("test_model.py",), "wave")


def test_a_noisy_case_is_proposed_for_ungating(lab):
    """Recorded, listed as what it is, and not red: a person decides."""
    lab.accepted()
    lab.fresh_ns = around(0.05, 4)
    result = lab.run("--perf-record-times=4")
    assert result.code == 0
    result.shows(
        "NOISY  model/wave  10.5 ms  4 sessions over 1 day, spread 5.8%: too noisy to gate, 3% may be",
        "proposed for un-gating, a person decides",
    )


def test_hardware_that_is_not_registered_is_refused(lab, monkeypatch):
    """Before anything runs, with the line to add."""
    lab.accepted()
    monkeypatch.setenv("JAXGATE_QUIET", "gpu-nvidia-h200-1")
    result = lab.run("--perf-record-times=1")
    assert result.code == 4
    assert (lab.recordings, lab.asked, lab.sessions()) == (0, [], ())
    result.shows(f"found {lab.slug}", f'perf_quiet = ["{lab.slug}"] under [tool.pytest]', f"JAXGATE_QUIET={lab.slug}")


def test_another_number_of_devices_is_not_registered(lab, monkeypatch):
    """The case's own hardware decides, once it is known: red, and nothing is stored."""
    lab.accepted()
    monkeypatch.setenv("JAXGATE_QUIET", lab.slug.removesuffix("1") + "8")
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    assert lab.sessions() == ()
    result.shows("REFUSED  model/wave", "expected hardware that is registered", "1 case: 1 REFUSED")


def test_the_ini_key_registers_hardware(lab, monkeypatch):
    """As a list under [tool.pytest]."""
    lab.accepted()
    monkeypatch.delenv("JAXGATE_QUIET")
    lab.project.write("pyproject.toml", f'[tool.pytest]\npythonpath = ["."]\nperf_quiet = ["{lab.slug}"]\n')
    assert lab.run("--perf-record-times=1").code == 0
    assert len(lab.sessions()) == 1


def test_a_busy_machine_is_refused(lab):
    """Exit code 2 before any session, with everything that speaks against it and how to go on."""
    lab.accepted()
    lab.looks = [BUSY]
    result = lab.run("--perf-record-times=2")
    assert result.code == 2
    assert (lab.recordings, lab.sessions()) == (0, ())
    result.shows(
        "before    load 1.9 of 2 cores, 1.9 at work, steal 5.0%",
        "REFUSED: load 1.9, at most 0.5 may be; 1.9 cores at work, at most 0.5 may be; steal 5.0%, at most 1% may be",
        "add --perf-busy-ok",
    )


def test_a_session_that_was_disturbed_is_dropped(lab):
    """The one before it stays, the recording ends with exit code 2."""
    lab.accepted()
    lab.looks = [QUIET, QUIET, BUSY]
    result = lab.run("--perf-record-times=3")
    assert result.code == 2
    assert (lab.recordings, len(lab.sessions())) == (2, 1)
    result.shows("Recorded 1 of 3 sessions", "REFUSED: load 1.9")


def test_a_busy_machine_may_be_allowed(lab):
    """The file notes what was seen."""
    lab.accepted()
    lab.looks = [BUSY, BUSY]
    assert lab.run("--perf-record-times=1", "--perf-busy-ok").code == 0
    (only,) = lab.sessions()
    assert only.objections == BUSY.objections
    assert only.machine == f"before: {BUSY}; after: {BUSY}"


@pytest.mark.parametrize("lent", [False, True], ids=["none", "on other hardware"])
def test_a_case_without_a_baseline_is_refused(lab, monkeypatch, lent):
    """Red, with the command; nothing is stored. A baseline of other hardware is not one of this."""
    lab.accepted()
    own = lab.path / "baselines" / lab.slug / "model/wave.json"
    text = own.read_text()
    own.unlink()
    if lent:
        content = json.loads(text)
        content["hardware"]["device_kind"] = "Other"
        other = lab.path / "baselines/cpu-other-1/model/wave.json"
        other.parent.mkdir(parents=True)
        other.write_text(json.dumps(content))

    def as_recorded(side, chosen, into):
        copy = into / lab.slug / "model/wave.json"
        copy.parent.mkdir(parents=True)
        copy.write_text(text)
        return {}

    lab.project.instruments["record"] = as_recorded
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    assert not (lab.path / "baselines" / lab.slug / "times").exists()
    result.shows("REFUSED  model/wave", "it has no baseline on this hardware; record that first: --perf-update")


@pytest.mark.parametrize("name", ["program", "inputs", "options"])
def test_another_program_is_refused(lab, name):
    """Its time would be held against the accepted one's."""
    lab.accepted()
    lab.breaks = lambda content: content["fingerprints"].update({name: "another"})
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    assert lab.sessions() == ()
    result.shows("changed since the baseline; record that first: --perf-update")


def test_another_environment_is_refused(lab):
    """The limit would be that of two environments."""
    lab.accepted()
    lab.new_environment()
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    assert lab.sessions() == ()
    result.shows("its environment changed since the baseline; record that first: --perf-update")


def test_virtual_devices_are_refused(lab, monkeypatch):
    """Even where somebody registered them."""
    lab.accepted()
    eight = lab.slug.removesuffix("1") + "8"
    monkeypatch.setenv("JAXGATE_QUIET", f"{lab.slug},{eight}")
    original = lab._record

    def virtual(side, chosen, into):
        original(side, chosen, into)
        (into / lab.slug).rename(into / eight)
        path = into / eight / "model/wave.json"
        content = json.loads(path.read_text())
        content["hardware"]["devices"] = 8
        path.write_text(json.dumps(content))
        return {}

    lab.project.instruments["record"] = virtual
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    result.shows("virtual CPU devices share their cores, so no clock judges them")


def test_a_test_that_fails_there_is_named(lab, monkeypatch):
    """A session in which a case failed is not green."""
    lab.accepted()
    lab.project.instruments["record"] = lambda *_: {"test_model.py::test_wave": "INVALID  model/wave"}
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    result.shows("REFUSED  test_model.py::test_wave", "failed in a session: INVALID  model/wave")


def test_sessions_that_record_nothing_are_not_green(lab, monkeypatch):
    """All tests skipped there, for example."""
    lab.accepted()
    lab.project.instruments["record"] = lambda *_: {}
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    result.shows("No session recorded a case: nothing is stored.")


def test_a_damaged_file_is_refused_and_left_alone(lab):
    """Red; what is there may be a merge that somebody can still mend."""
    lab.accepted(MODEL, CALL_NS)
    path = lab.path / "baselines" / lab.slug / "times/model/wave.json"
    path.write_text("{")
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    assert path.read_text() == "{"
    result.shows("REFUSED  model/wave", "wave.json is not JSON")


def test_nothing_that_gates_is_a_usage_error(lab):
    """A selection without gates has no times."""
    lab.project.write("test_plain.py", "def test_plain():\n    pass\n")
    result = lab.run("--perf-record-times=1")
    assert result.code == 4
    result.shows("none of the selected tests gates")


def test_a_file_that_cannot_be_collected_is_red(lab):
    """As in any run of pytest; nothing is recorded."""
    lab.project.write("test_model.py", "import no_such_module\n")
    assert lab.run("--perf-record-times=1").code == 2
    assert lab.recordings == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--perf-record-times=-1"], "expected 1 or more, found -1"),
        (["--perf-busy-ok"], "it needs --perf-record-times"),
        (["--perf-record-times=1", "--perf-update"], "drop --perf-update"),
        (["--perf-record-times=1", "--perf-calibrate=5"], "drop --perf-calibrate"),
        (["--perf-record-times=1", "--perf-plan"], "drop --perf-plan"),
        (["--perf-record-times=1", "--perf-against-env=X=1"], "drop --perf-against-env"),
        (["--perf-record-times=1", "--benchmark-disable"], "drop --benchmark-disable"),
        (["--perf-record-times=1", "-n2"], "drop -n"),
    ],
)
def test_options_that_do_not_go_together(lab, arguments, message):
    """One line, exit code 4."""
    result = lab.run(*arguments)
    assert result.code == 4
    result.shows(message)


@pytest.mark.parametrize("name", ["h200", "gpu nvidia h200", "GPU-nvidia-h200-1", "gpu-nvidia-h200", "gpu-x-0"])
def test_a_name_that_no_hardware_has_is_refused(lab, monkeypatch, name):
    """It would never be met, and the gate would silently not be on."""
    monkeypatch.setenv("JAXGATE_QUIET", f"gpu-nvidia-h200-1, {name}")
    result = lab.run()
    assert result.code == 4
    result.shows("expected hardware as its folder under the baselines is named", repr(name))


# Judging: the environment changed


def test_a_slow_environment_is_seen_and_repeated(lab):
    """The program is the same, a duel with itself sees nothing; two fresh processes agree: SLOWER, red."""
    lab.accepted(MODEL, *around(0.005))
    lab.new_environment()
    lab.now_ns, lab.fresh_ns = round(1.2 * CALL_NS), [round(1.1 * CALL_NS), round(1.3 * CALL_NS)]
    result = lab.run("-v")
    assert result.code == 1
    assert lab.recordings == 2
    assert lab.chosen.paths == ("test_model.py::test_wave",)
    assert lab.asked == [{"after_work": True, "holds_device": True}] * 2
    result.shows(
        "test_model.py::test_wave SUSPECT",
        "SLOWER  model/wave  on ",
        "a call takes 12 ms against 10 ms = 1.20 ×, allowed 10.3 ms",
        "stored times: 10 sessions over 1 day, limit +3.0% (environment changed [XLA_FLAGS absent → --xla_new]); in fresh processes 1.100 ×, 1.300 ×",
        "XLA_FLAGS absent → --xla_new",
        "comes from: environment",
    )


@pytest.mark.parametrize("fresh", [[1.0], [1.2, 1.0]], ids=["the first", "the second"])
def test_one_fresh_process_that_disagrees_takes_it_back(lab, fresh):
    """UNDECIDED, and no further process is started."""
    lab.accepted(MODEL, *around(0.005))
    lab.new_environment()
    lab.now_ns, lab.fresh_ns = round(1.2 * CALL_NS), [round(ratio * CALL_NS) for ratio in fresh]
    result = lab.run()
    assert result.code == 0
    assert lab.recordings == len(fresh)
    result.shows(f"but it did not come again in fresh process {len(fresh)} of 2")
    result.shows("1 case: 1 UNDECIDED")


def test_a_same_environment_says_what_it_would_have_seen(lab):
    """SAME by stored times, not by a duel of a program with itself."""
    lab.accepted(MODEL, *around(0.01))
    lab.new_environment()
    result = lab.run()
    assert result.code == 0
    assert lab.recordings == 0
    result.shows("SAME", "limit +3.7%, a slow-down above 5.1% would have shown (environment changed [XLA_FLAGS")


def test_a_fast_environment_is_reported(lab):
    """Two-sided; not red, not repeated."""
    lab.accepted(MODEL, *around(0.01))
    lab.new_environment()
    lab.now_ns = round(0.9 * CALL_NS)
    result = lab.run()
    assert (result.code, lab.recordings) == (0, 0)
    result.shows("FASTER", "0.90 × the baseline")


def test_a_limit_that_sees_too_little_is_undecided(lab):
    """Three sessions allow 11.46 times their spread: SAME would say more than is known."""
    lab.accepted(MODEL, *around(0.01, 3))
    lab.new_environment()
    result = lab.run()
    result.shows("1 case: 1 UNDECIDED", "10% is asked for")


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ([], "stored times: no session, 3 are needed; record them: --perf-record-times 10"),
        (around(0.005, 2), "stored times: 2 sessions over 1 day, 3 are needed"),
        (around(0.05), "stored times: 10 sessions over 1 day, spread 5.3%: too noisy to gate"),
    ],
    ids=["none", "two", "noisy"],
)
def test_where_they_do_not_gate_nothing_is_same(lab, times, why):
    """A doubled time is not called SAME by a duel of a program with itself: UNDECIDED, and why."""
    lab.accepted(MODEL, *times)
    lab.new_environment()
    lab.now_ns = 2 * CALL_NS
    result = lab.run()
    assert (result.code, lab.recordings) == (0, 0)
    result.shows("1 case: 1 UNDECIDED", "--xla_new] and a duel of a program with itself sees nothing of that", why)


def test_sessions_of_another_baseline_do_not_count(lab):
    """Accepting a new environment leaves the old times behind, and says so."""
    lab.accepted(MODEL, *around(0.005))
    path = lab.path / "baselines" / lab.slug / "model/wave.json"
    content = json.loads(path.read_text())
    content["environment"]["jax"] = "0.9"
    path.write_text(json.dumps(content))
    lab.now_ns = 2 * CALL_NS
    lab.run().shows("1 UNDECIDED", "no session, 3 are needed (10 of another baseline)")


def test_hardware_that_is_not_registered_is_not_judged_by_them(lab, monkeypatch):
    """The same files on any other machine: the duel, as ever."""
    lab.accepted(MODEL, *around(0.005))
    lab.new_environment()
    monkeypatch.delenv("JAXGATE_QUIET")
    lab.now_ns = 2 * CALL_NS
    lab.project.instruments["run_duel"] = lambda *_, **__: duel(1.0)
    result = lab.run()
    assert (result.code, lab.recordings) == (0, 0)
    result.shows("1 case: 1 SAME", "environment changed")
    assert "stored times" not in result.text


def test_an_identical_program_needs_no_times(lab):
    """SAME by identity, however slow the clock says it is."""
    lab.accepted(MODEL, *around(0.005))
    lab.now_ns = 2 * CALL_NS
    lab.run().shows("1 case: 1 SAME", "identical program")


def duel(ratio):
    """A duel without noise."""
    now = round(CALL_NS * ratio)
    return Duel(now_ns=((now,),) * 60, baseline_ns=((CALL_NS,),) * 60, calls_per_burst=1, seed=0)


def test_a_duel_has_the_last_word_on_a_changed_program(lab, monkeypatch):
    """The times would say SLOWER; the duel here and now says SAME."""
    lab.accepted(MODEL, *around(0.005))
    lab.project.edit("test_model.py", "jnp.exp(-x)", "jnp.exp(-x) + 1")
    lab.now_ns = 2 * CALL_NS
    lab.project.instruments["run_duel"] = lambda *_, **__: duel(1.0)
    assert str(decide(duel(1.0)).status) == "SAME"
    result = lab.run()
    assert lab.recordings == 0
    assert "stored times" not in result.text
    result.shows("1.00 × the baseline")


# Judging: no duel can be run


def test_a_program_that_calls_python_is_judged_by_its_times(lab):
    """It cannot be stored and duelled; the reason says so."""
    lab.accepted(TALK, *around(0.005))
    lab.now_ns = round(1.2 * CALL_NS)
    result = lab.run()
    assert result.code == 1
    assert lab.recordings == 2
    result.shows(
        "SLOWER  model/talk",
        "stored times: 10 sessions over 1 day, limit +3.0%; it cannot be stored and duelled (the program calls Python",
    )


def test_its_sessions_are_those_of_its_source(lab):
    """The Python behind a callback is covered by the source alone: an edited one is not recorded."""
    lab.accepted(TALK)
    lab.breaks = lambda content: content["fingerprints"].update(source="edited")
    result = lab.run("--perf-record-times=1")
    assert result.code == 1
    result.shows("its source (it calls Python) changed since the baseline")


# Fail closed


def slow(lab):
    """A case that is a suspect here."""
    lab.accepted(MODEL, *around(0.005))
    lab.new_environment()
    lab.now_ns = round(1.2 * CALL_NS)


def test_a_busy_machine_accuses_nobody(lab):
    """Before a repeat the machine is looked at again: INVALID, not SLOWER, and exit code 2: no case is accused."""
    slow(lab)
    lab.looks = [QUIET, BUSY]
    result = lab.run()
    assert result.code == 2
    assert lab.recordings == 1
    result.shows("INVALID  model/wave", "it could not be confirmed: the machine is not quiet: load 1.9")


def test_a_repeat_of_another_program_is_invalid(lab):
    """Whatever it measured is not about this case."""
    slow(lab)
    lab.breaks = lambda content: content["fingerprints"].update(program="another")
    result = lab.run()
    assert result.code == 1
    result.shows("INVALID  model/wave", "a fresh process ran another program, or in another environment")


def test_a_repeat_that_fails_is_invalid(lab, monkeypatch):
    """With what it said."""
    slow(lab)
    lab.project.instruments["record"] = lambda *_: {"test_model.py::test_wave": "out of memory"}
    result = lab.run()
    assert result.code == 1
    result.shows("INVALID  model/wave", "it could not be confirmed: out of memory")


def test_a_repeat_that_cannot_start_is_invalid(lab, monkeypatch):
    """Likewise."""

    def fail(*_):
        raise UsageError("no such file")

    slow(lab)
    lab.project.instruments["record"] = fail
    lab.run().shows("INVALID  model/wave", "it could not be confirmed: a fresh process failed: no such file")


def test_damaged_times_are_invalid(lab):
    """Not passed over; the file is named, with the command that mends it."""
    slow(lab)
    path = lab.path / "baselines" / lab.slug / "times/model/wave.json"
    path.write_text(path.read_text()[:50])
    result = lab.run()
    assert result.code == 1
    relative = f"baselines/{lab.slug}/times/model/wave.json"
    result.shows("INVALID  model/wave", "reading the stored times", f"git checkout -- {relative}")


def test_a_clock_that_stands_still_is_invalid(lab):
    """Zero nanoseconds are not FASTER."""
    slow(lab)
    lab.now_ns = 0
    result = lab.run()
    assert result.code == 1
    result.shows("INVALID  model/wave", "expected a positive time")


# For real


def test_one_real_session(project, monkeypatch):
    """A process of its own is asked for the hardware, another records a tiny function; a time is stored."""
    project.write("test_model.py", MODEL)
    project.record()
    slug = environment.first_device().slug
    monkeypatch.setenv("JAXGATE_QUIET", slug)
    result = project.run("--perf-record-times=1", "--perf-busy-ok")
    baseline = BaselineStore(project.path / "baselines").load(environment.first_device(), "model/wave").baseline
    assert result.code == 0
    (only,) = TimesStore(project.path / "baselines").load(environment.first_device(), "model/wave").sessions
    result.shows(f"RECORDED  model/wave  {show('run_ns', only.run_ns)}  1 session over 1 day, 3 are needed")
    assert only.fingerprints == baseline.fingerprints
    assert "cores" in only.machine


def test_a_real_repeat(project, monkeypatch):
    """A real process runs the one test again, and agrees that a call takes more than a nanosecond."""
    project.instruments.update(processes=1, look=lambda *_, **__: QUIET)
    project.write("test_model.py", MODEL)
    project.record()
    hardware = environment.first_device()
    monkeypatch.setenv("JAXGATE_QUIET", hardware.slug)
    store, times = BaselineStore(project.path / "baselines"), TimesStore(project.path / "baselines")
    accepted = store.load(hardware, "model/wave").baseline
    accepted = replace(accepted, environment={**accepted.environment, "jax": "0.9"})
    store.save(accepted)
    for _ in range(10):
        stored = session(1.0, fingerprints=accepted.fingerprints, environment=accepted.environment)
        times.add(hardware, "model/wave", stored)
    result = project.run()
    assert result.code == 1
    result.shows("SLOWER  model/wave", "stored times: 10 sessions over 1 day, limit +15.0%", "in fresh processes")


@pytest.mark.parametrize("elsewhere", [{"against": "0123456789"}, {"against_env": ("XLA_FLAGS=",)}])
def test_another_side_than_the_baselines_is_not_judged_by_times(project, elsewhere):
    """The stored times are those of the stored baselines."""
    settings = replace(project.pytester.parseconfigure().stash[SETTINGS], quiet=("cpu-amd-epyc-1",))
    assert GateSession(settings, project.path).stored_times._quiet == {"cpu-amd-epyc-1"}
    assert GateSession(replace(settings, **elsewhere), project.path).stored_times._quiet == frozenset()
