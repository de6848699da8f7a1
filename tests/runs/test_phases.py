"""Phases against the baseline's: what is beyond the limit waits for fresh processes, which confirm it or not.

The baseline is edited so that it took one nanosecond, and the absolute floor is taken away: every phase is red.
"""

import json
from dataclasses import replace

import pytest
from support.corpora import nightly
from support.fakes import QUICK, SLOW, judge_phases_by
from support.projects import model

from jaxgate.judge.policy import STORED_PHASE_POLICIES
from jaxgate.model.numbers import Phases

NO_TIME = {"trace_ns": 1, "lower_ns": 1, "compile_ns": 1, "first_call_ns": 1, "trace_wait_ns": None}


@pytest.fixture
def recorded(project, lab):
    """A baseline that says that nothing takes any time; its yardstick is taken out, so that no slower machine loosens a limit."""
    lab.judge_phases()
    lab.phases = [SLOW, SLOW]
    project.write("test_model.py", model("jnp.ones(64)", step="jnp.tanh(x) * 2")).record()
    project.edit_baseline(phases=NO_TIME | {"yardstick_ns": None})
    return project


@pytest.fixture
def changed(recorded, lab):
    """The program is another one now, and a fresh process would record that."""
    recorded.edit("test_model.py", "jnp.tanh(x) * 2", "jnp.tanh(x) * 3")
    assert recorded.run("--perf-update", "--perf-baselines=today").code == 0
    lab.accepted = recorded.path / "today"
    return recorded


def run(project, *arguments):
    """Run the tests without duels: time is not what is asked for."""
    return project.run("--perf-budget", "0", *arguments)


@nightly
def test_a_slow_trace_waits_and_is_confirmed_by_real_processes(recorded):
    """The same program is traced in more time: suspect first, red after two fresh processes; it may be accepted."""
    del recorded.instruments["record"]
    result = run(recorded, "-v")
    assert result.code == 1
    result.counts(failed=1)
    result.shows(
        "test_model.py::test_step SUSPECT",
        "test_model.py::test_step FAILED",
        "REGRESSED  model/step  on cpu-",
        "against 1 ns",
        "allowed 2 ns (confirmed in 2 fresh processes)",
        "identical program",
        "reproduce: pytest 'test_model.py::test_step'   accept: add --perf-update",
    )
    assert result.line("  found     ").startswith("  found     trace_ns ")
    assert "also" not in result.line("  found     ")  # the program is the same: nothing else can have changed
    recorded.run("--perf-update").counts(passed=1)
    assert json.loads(recorded.baseline().read_text())["phases"]["trace_ns"] != 1  # today's


def test_what_does_not_come_again_is_not_red(recorded, lab):
    """One process that disagrees is enough: green, counted as UNDECIDED, and no further one is started."""
    lab.phases = [SLOW, QUICK]
    result = run(recorded, "-v")
    assert result.code == 0
    result.counts(passed=1)
    assert len(lab.recorded) == 2
    result.shows("test_model.py::test_step SUSPECT", "test_model.py::test_step PASSED", "1 case: 1 UNDECIDED")


def test_what_cannot_be_confirmed_is_invalid(recorded, lab):
    """Neither green nor an accusation: red, with the reason."""
    lab.phases = [SLOW, "a fresh process recorded nothing"]
    result = run(recorded)
    assert result.code == 1
    result.counts(failed=1)
    result.shows("INVALID  model/step", "it could not be confirmed: a fresh process recorded nothing")


def test_a_slow_compile_of_a_changed_program_is_confirmed(changed, lab):
    """Of a changed program all of trace, lowering, compiling and the first call are judged, and confirmed together."""
    result = run(changed)
    assert result.code == 1
    assert [chosen.paths for chosen in lab.recorded] == [("test_model.py::test_step",)] * 2
    result.shows("REGRESSED  model/step", "confirmed in 2 fresh processes", "1 case: 1 REGRESSED")
    for name in ("trace_ns", "lower_ns", "compile_ns", "first_call_ns"):
        assert name in result.line("  found     ")
    assert "not repeated" not in result.text


def test_a_red_fact_does_not_wait(recorded, lab):
    """The case is red without the clock: at once, no process is started, and the text says what was not repeated."""
    recorded.edit_baseline(facts={"output_bytes": 1})
    result = run(recorded, "-v")
    assert result.code == 1
    assert lab.recorded == []
    assert "SUSPECT" not in result.text
    result.shows("output_bytes 256 B against 1 B", "also trace_ns (not repeated in fresh processes)")


def test_recording_waits_for_nobody(recorded, lab):
    assert run(recorded, "--perf-update").code == 0
    assert lab.recorded == []


@pytest.mark.parametrize(("again", "status"), [(400_000_000, "REGRESSED"), (1_000_000, "UNDECIDED")])
def test_a_sleep_while_tracing_is_red_where_it_comes_again(project, lab, monkeypatch, again, status):
    """The program is the same, and the tracing thread ran no longer: it waited."""
    (policy,) = (policy for policy in STORED_PHASE_POLICIES if policy.name == "trace_wait_ns")
    judge_phases_by(monkeypatch, replace(policy, absolute=20_000_000))
    project.write("test_model.py", model("jnp.ones(64)", step="jnp.tanh(x) * 2")).record()
    project.edit_baseline(phases={"trace_ns": 1, "trace_wait_ns": 0, "yardstick_ns": None})
    project.edit("test_model.py", "jnp.tanh(x) * 2", "(__import__('time').sleep(0.1), jnp.tanh(x) * 2)[1]")
    lab.phases = [Phases(trace_wait_ns=again)] * 2
    result = run(project, "--perf-max-undecided=1")
    result.shows(f"{status}  model/step", "trace_wait_ns ", "identical program")
    assert result.code == (1 if status == "REGRESSED" else 0)
