"""Energy through the real plugin, on a machine with a fake counter: shown, written down, compared, and never a failure."""

import json

import pytest
from support.energy import WorkingWorld
from support.fakes import duel

MODEL = """
import jax.numpy as jnp
from jaxgate import Batch

def wave(x):
    return jnp.exp(-x)

def test_wave(gate):
    gate(wave, jnp.ones((64, 8)), batch=Batch(argument=0, size=64))
"""


@pytest.fixture
def counted(project, lab):
    """A project whose case was recorded on a machine with a counter."""
    world = WorkingWorld()
    lab.instruments["find_meters"] = lambda: world.meters
    project.write("test_model.py", MODEL).record()
    return world


def energy(project):
    """What the run left of its one case."""
    (case,) = json.loads((project.path / "perf-artifacts/results.json").read_text())["cases"]
    return case["energy"]


def test_energy_is_shown_beside_the_rate_and_written_down(project, counted):
    """In the list, with ``-v`` how it was measured, and in the files; the log of the recording has it, the baseline has not."""
    result = project.run("-v")
    assert result.code == 0
    assert "samples/J" in result.text
    assert "energy: " in result.text
    found = energy(project)
    assert found["counter"] == "FAKE"
    assert found["per_joule"] == pytest.approx(64e6 / found["call_uj"])
    assert found["duel"] is None
    (entry,) = (project.path / "baselines/log").iterdir()
    assert "a call within" in entry.read_text()
    (baseline,) = (project.path / "baselines").glob("*/model/wave.json")
    assert "energy" not in baseline.read_text()


def test_both_sides_of_a_duel_are_counted(project, counted, lab):
    """The program changed, and both programs draw the same here: the ratio is written, and nothing is red."""
    project.edit("test_model.py", "jnp.exp(-x)", "jnp.sin(-x)")
    lab.finds["baseline"] = duel(1.0, 60)
    result = project.run("-v")
    assert lab.duelled == ["baseline"]
    assert "energy beside the baseline's program: " in result.text
    both = energy(project)["duel"]
    assert both["ratio"] == pytest.approx(1, abs=both["resolution"])
    assert result.code == 0


def test_a_run_without_a_clock_does_not_read_the_counter(project, counted):
    before = counted.reads
    assert project.run("--benchmark-disable").code == 0
    assert counted.reads == before
    assert energy(project) is None


def test_a_counter_that_cannot_answer_fails_nothing(project, counted):
    """It jumps: the case is what it was, and the reason is kept."""
    jumps_at = counted.reads + 60
    counted.spoil = lambda values: tuple(uj + 10**9 * (counted.reads > jumps_at) for uj in values)
    result = project.run("-v")
    assert result.code == 0
    assert energy(project)["unknown"].startswith("the counter jumped")
    assert "energy: unknown, the counter jumped" in result.text
