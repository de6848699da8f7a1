"""A run that decides too little is not green: the machine is unfit, and says so."""

from __future__ import annotations

import pytest
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


def test_the_cap_is_an_option(changed):
    """--perf-max-undecided sets the share; all of the cases is more than 90 % of them."""
    assert changed.run(*NO_DUELS, "--perf-strict", "--perf-max-undecided", "0.9").code == 2


def test_a_recording_is_not_unfit(changed):
    """Time is not judged when recording: that no duel was run leaves nothing open."""
    assert changed.run("--perf-update", "--perf-strict").code == 0
