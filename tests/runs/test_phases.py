"""Phases against the baseline's: what is beyond the limit waits for fresh processes, which confirm it or not.

The baseline is edited so that it took one nanosecond, and the absolute floor is taken away: every phase is red.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from jaxgate.judge import STORED_PHASE_POLICIES
from jaxgate.model import Phases

MODEL = """
import jax, jax.numpy as jnp

def step(x):
    return jnp.tanh(x) * 2

def test_step(gate):
    gate(step, jnp.ones(64))
"""
QUICK = Phases(trace_ns=1, lower_ns=1, compile_ns=1, first_call_ns=1, host_ns=1)
SLOW = Phases(trace_ns=10, lower_ns=10, compile_ns=10, first_call_ns=10, host_ns=10)


class Lab:
    """A project whose baseline says that nothing takes any time; fresh processes answer as they are told to."""

    def __init__(self, project, monkeypatch):
        self.project = project
        self.answers = [SLOW, SLOW]
        self.asked = []
        project.instruments["record"] = self._answer
        without_floor = tuple(replace(policy, absolute=0) for policy in STORED_PHASE_POLICIES)
        monkeypatch.setattr("jaxgate.judge.phases.STORED_PHASE_POLICIES", without_floor)
        project.write("test_model.py", MODEL)
        project.record()
        (self.path,) = project.path.glob("baselines/cpu-*/model/step.json")
        self.edit(lambda content: content["phases"].update(trace_ns=1, lower_ns=1, compile_ns=1, first_call_ns=1))
        self.today = self.path  # what a fresh process would record, but for its phases

    def change(self):
        """Change the program, and know what a fresh process would record of it."""
        self.project.edit("test_model.py", "jnp.tanh(x) * 2", "jnp.tanh(x) * 3")
        assert self.project.run("--perf-update", "--perf-baselines=today").code == 0
        (self.today,) = self.project.path.glob("today/cpu-*/model/step.json")

    def edit(self, change):
        """Edit the stored baseline; its yardstick is taken out, so that no slower machine loosens a limit."""
        content = json.loads(self.path.read_text())
        content["phases"]["yardstick_ns"] = None
        change(content)
        self.path.write_text(json.dumps(content))

    def _answer(self, side, selection, into):
        """A fresh process that records the phases that are next, or says why not."""
        self.asked.append(selection.paths)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            return dict.fromkeys(selection.paths, answer)
        content = json.loads(self.today.read_text())
        content["phases"] = asdict(answer)
        copy = into / self.today.relative_to(self.today.parents[2])
        copy.parent.mkdir(parents=True)
        copy.write_text(json.dumps(content))
        return {}

    def run(self, *arguments):
        """Run the tests without duels: time is not what is asked for."""
        return self.project.run("--perf-budget", "0", *arguments)


@pytest.fixture
def lab(project, monkeypatch):
    """A recorded project."""
    return Lab(project, monkeypatch)


ASKED = ("test_model.py::test_step",)


def test_a_slow_trace_waits_and_is_confirmed_by_real_processes(lab, monkeypatch):
    """The same program is traced in more time: suspect first, red after two fresh processes; it may be accepted."""
    del lab.project.instruments["record"]
    result = lab.run("-v")
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
    lab.project.run("--perf-update").counts(passed=1)
    assert json.loads(lab.path.read_text())["phases"]["trace_ns"] != 1  # today's


def test_both_processes_are_asked_for_the_one_test(lab):
    """One after the other, the case's own test."""
    result = lab.run()
    assert result.code == 1
    assert lab.asked == [ASKED, ASKED]
    result.shows("1 case: 1 REGRESSED")


@pytest.mark.parametrize("answers", [[QUICK], [SLOW, QUICK]], ids=["the first", "the second"])
def test_what_does_not_come_again_is_not_red(lab, answers):
    """One process that disagrees is enough: green, counted as UNDECIDED, and no further one is started."""
    lab.answers = list(answers)
    result = lab.run("-v")
    assert result.code == 0
    result.counts(passed=1)
    assert len(lab.asked) == len(answers)
    result.shows("test_model.py::test_step SUSPECT", "test_model.py::test_step PASSED", "1 case: 1 UNDECIDED")


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["a fresh process failed: no such file"], "it could not be confirmed: a fresh process failed: no such file"),
        ([SLOW, "a fresh process recorded nothing"], "it could not be confirmed: a fresh process recorded nothing"),
        ([replace(SLOW, trace_ns=None)] * 2, "it could not be confirmed: it came out of a cache"),
    ],
    ids=["fails", "nothing", "not measured"],
)
def test_what_cannot_be_confirmed_is_invalid(lab, answers, reason):
    """Neither green nor an accusation: red, with the reason."""
    lab.answers = list(answers)
    result = lab.run()
    assert result.code == 1
    result.counts(failed=1)
    result.shows("INVALID  model/step", reason)


def test_a_slow_compile_of_a_changed_program_is_confirmed(lab):
    """Of a changed program all of trace, lowering, compiling and the first call are judged, and confirmed together."""
    lab.change()
    result = lab.run()
    assert result.code == 1
    assert len(lab.asked) == 2
    result.shows("REGRESSED  model/step", "confirmed in 2 fresh processes")
    for name in ("trace_ns", "lower_ns", "compile_ns", "first_call_ns"):
        assert name in result.line("  found     ")
    assert "not repeated" not in result.text


def test_one_phase_that_comes_again_is_enough(lab):
    """The compile stays slow, the others do not: red by the compile alone."""
    lab.change()
    lab.answers = [replace(QUICK, compile_ns=10)] * 2
    result = lab.run()
    assert result.code == 1
    found = result.line("  found     ")
    assert found.startswith("  found     compile_ns ")
    assert "also" not in found


def test_a_compile_of_the_same_program_is_not_judged(lab):
    """Nothing of the project can have changed it: of an unchanged program only the trace is judged."""
    lab.edit(lambda content: content["phases"].update(trace_ns=None))
    result = lab.run()
    assert (result.code, lab.asked) == (0, [])
    assert result.line("model/step").startswith("SAME")


def test_a_red_fact_does_not_wait(lab):
    """The case is red without the clock: at once, no process is started, and the text says what was not repeated."""
    lab.edit(lambda content: content["facts"].update(output_bytes=1))
    result = lab.run("-v")
    assert result.code == 1
    assert lab.asked == []
    assert "SUSPECT" not in result.text
    result.shows("output_bytes 256 B against 1 B", "also trace_ns (not repeated in fresh processes)")


def test_recording_waits_for_nobody(lab):
    """--perf-update accepts the phases of today."""
    assert lab.run("--perf-update").code == 0
    assert lab.asked == []
