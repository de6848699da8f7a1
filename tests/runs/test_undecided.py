"""A run that decides too little is not green: the machine is unfit, and says so."""

from __future__ import annotations

import pytest

MODEL = """
import jax.numpy as jnp

def step(x):
    return x @ x

def other(x):
    return x + 1

def test_step(gate):
    gate(step, jnp.ones((16, 16)))

def test_other(gate):
    gate(other, jnp.ones(16))
"""

NO_DUELS = ["--perf-budget", "0"]


@pytest.fixture
def changed(project):
    """A project whose two programs changed since they were recorded, without getting worse in any fact."""
    project.write("test_model.py", MODEL)
    project.record()
    project.edit("test_model.py", "return x @ x", "return x @ x.T")
    project.edit("test_model.py", "return x + 1", "return x + 2")
    return project


def test_locally_it_is_shown(changed):
    """Locally UNDECIDED cases pass and are counted."""
    result = changed.run(*NO_DUELS)
    assert result.code == 0
    result.shows("2 cases: 2 UNDECIDED", "the budget for duels is spent")


def test_under_ci_it_ends_with_exit_code_2(changed):
    """Where strict, more than half UNDECIDED ends with exit code 2 and one clear line."""
    result = changed.run(*NO_DUELS, "--perf-strict")
    assert result.code == 2
    result.shows("100% of the cases are UNDECIDED, 50% may be: this machine is unfit to gate (exit code 2)")


def test_the_line_names_no_exit_code_that_the_run_does_not_have(changed):
    """Another test that fails makes it 1: the share is told, and 2 is not claimed."""
    changed.write("test_plain.py", "def test_plain():\n    raise ValueError\n")
    result = changed.run(*NO_DUELS, "--perf-strict")
    assert result.code == 1
    result.shows("this machine is unfit to gate")
    assert "(exit code 2)" not in result.text


@pytest.mark.parametrize(("share", "code"), [("1", 0), ("0.9", 2)])
def test_the_cap_is_an_option(changed, share, code):
    """--perf-max-undecided sets the share."""
    assert changed.run(*NO_DUELS, "--perf-strict", "--perf-max-undecided", share).code == code


@pytest.mark.parametrize("share", ["much", "-1", "2", "nan"])
def test_a_share_that_makes_no_sense_is_refused(changed, share):
    """A share is a number between 0 and 1."""
    result = changed.run(f"--perf-max-undecided={share}")
    assert result.code == 4


def test_a_recording_is_not_unfit(changed):
    """Time is not judged when recording: that no duel was run leaves nothing open."""
    assert changed.run("--perf-update", "--perf-strict").code == 0


def test_a_file_that_does_not_import_is_no_unfit_machine(changed):
    """Pytest ends with 2 there; a strict run ends with 1, as for anything that failed."""
    changed.write("test_broken.py", "import no_such_module_of_mine\n")
    assert changed.run("--perf-strict").code == 1
    assert changed.run("--no-perf-strict").code == 2
