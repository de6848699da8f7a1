"""Stored programs that come near the end of jax's promise are told of, in one line that fails nothing."""

from datetime import date

import jax
import pytest
from support.projects import model

MODEL = model(step="x * 2", other="x * 4")
SHOUT = MODEL.replace("    return x * 2", "    jax.debug.callback(print, x[0])\n    return x")


@pytest.fixture
def recorded(project):
    """Two recorded cases."""
    return project.write("test_model.py", MODEL).record()


def dated(project, name, day):
    """Set the date of a baseline."""
    project.edit_baseline(f"model/{name}", provenance={"date": day})


@pytest.fixture
def on(project):
    """Choose today."""
    return lambda day: project.instruments.update(today=lambda: date.fromisoformat(day))


def test_old_programs_are_told_of(recorded, on):
    """How many, the oldest with its case, and what to do; also under CI it fails nothing."""
    dated(recorded, "step", "2026-01-01")
    dated(recorded, "other", "2026-02-01")
    on("2026-06-01")
    assert "AGEING" not in recorded.run("-k", "other").text
    assert recorded.run().line("AGEING").startswith("AGEING: 1 stored program was recorded")
    on("2026-07-02")
    result = recorded.run("--perf-strict")
    assert result.code == 0
    assert result.line("AGEING") == (
        "AGEING: 2 stored programs were recorded more than 150 days ago (oldest 2026-01-01, model/step): jax promises "
        "to read them for 180 days; refresh with --perf-update"
    )


def test_recording_again_ends_it(recorded, on):
    """A case that was recorded in this run is not old any more; one that was not still is."""
    dated(recorded, "step", "2025-01-01")
    on("2026-11-21")
    assert "AGEING" not in recorded.run("-k", "step", "--perf-update").text
    assert "AGEING" not in recorded.run("-k", "step").text


def test_a_case_without_a_stored_program_does_not_age(project, on):
    """Nothing is stored of a program that calls Python."""
    project.write("test_model.py", SHOUT)
    assert project.run("-k", "step", "--perf-update").code == 0
    dated(project, "step", "2025-01-01")
    on("2026-11-21")
    assert "AGEING" not in project.run("-k", "step").text


@pytest.mark.parametrize(("day", "over"), [("2026-01-01", True), ("2026-11-01", False)])
def test_a_program_that_cannot_be_read_says_when_its_time_was_over(recorded, monkeypatch, on, day, over):
    """The reader's refusal, and the day until which it had to be readable if that is past."""
    dated(recorded, "step", day)
    recorded.edit("test_model.py", "x * 2", "x * 3")
    on("2026-11-21")

    def refuse(_):
        raise ValueError("too old")

    monkeypatch.setattr(jax.export, "deserialize", refuse)
    line = recorded.run("-k", "step").line("UNDECIDED  model/step")
    assert "cannot read it (ValueError); record it again with --perf-update" in line
    note = "(recorded on 2026-01-01, it was promised to be readable until 2026-06-30)"
    assert line.endswith(note) is over
