"""A run that decides too little is not green: the machine is unfit, and says so."""

import pytest
from support.fakes import duel
from support.projects import model

MODEL = model("jnp.ones((16, 16))", step="x @ x", other="x + 1")
NO_DUELS = ["--perf-budget", "0"]


@pytest.fixture
def changed(project):
    """A project whose two programs changed since they were recorded, without getting worse in any fact."""
    project.write("test_model.py", MODEL).record()
    project.edit("test_model.py", "return x @ x", "return x @ x.T")
    project.edit("test_model.py", "return x + 1", "return x + 2")
    return project


def test_the_line_names_no_exit_code_that_the_run_does_not_have(changed):
    """Another test that fails makes it 1: the share is told, and 2 is not claimed."""
    changed.write("test_plain.py", "def test_plain():\n    raise ValueError\n")
    result = changed.run(*NO_DUELS, "--perf-strict")
    assert result.code == 1
    result.shows("this machine is unfit to gate")
    assert "(exit code 2)" not in result.text


TALKS = """

def talk(x):
    jax.debug.callback(lambda value: None, x[0, 0])
    return x * 2

def test_talk(gate):
    gate(talk, jnp.ones((16, 16)))
"""


def test_what_no_machine_decides_is_not_the_machines_fault(project):
    """An unchanged suite of programs that call Python is green under CI, and says what would decide it."""
    project.write("test_model.py", "import jax\nimport jax.numpy as jnp\n" + TALKS).record()
    result = project.run("--perf-strict")
    assert result.code == 0
    result.shows("1 case: 1 UNDECIDED", "1 case is UNDECIDED on any machine", "--perf-update=times")
    assert "unfit" not in result.text


def test_what_another_machine_would_decide_still_counts(project):
    """One of the two that could be decided is not: more than half would not be allowed."""
    project.write("test_model.py", "import jax\n" + MODEL + TALKS).record()
    project.edit("test_model.py", "return x @ x", "return x @ x.T")
    result = project.run(*NO_DUELS, "--perf-strict", "--perf-max-undecided", "0.4")
    assert result.code == 2
    result.shows("3 cases: 1 SAME, 2 UNDECIDED", "50% of the cases are UNDECIDED, 40% may be")


def test_a_recording_is_not_unfit(changed, lab):
    """What is recorded is accepted: neither a duel that was not run nor one that decided nothing leaves anything open."""
    assert changed.run("--perf-update", "--perf-strict", *NO_DUELS).code == 0
    changed.edit("test_model.py", "return x @ x.T", "return x.T @ x")
    lab.finds["baseline"] = duel(1.0, 4)
    assert changed.run("--perf-update", "--perf-strict").code == 0
    first = changed.results()["cases"][0]
    assert (lab.duelled, first["time"]["status"], first["status"]) == (["baseline"], "UNDECIDED", "SAME")
