"""Baselines without a clock: facts are recorded and gate, no time is stored, and later runs do without it."""

import json

import pytest
from support.projects import TWO, model

QUICK = ("--perf-update", "--benchmark-disable")


def samples(project):
    """What is stored of times, by case."""
    found = [json.loads(text) for text in project.baselines().values()]
    return {one["case"]: one["samples"] for one in found}


@pytest.fixture
def clockless(project):
    """A project whose baselines have no time."""
    project.write("test_model.py", TWO)
    result = project.run(*QUICK)
    assert result.code == 0, result.text
    result.shows(
        "2 cases: 2 CREATED",
        "WITHOUT A CLOCK: 2 cases were recorded under --benchmark-disable: their facts gate; how long a call takes is not "
        "known, but where the same program had a time that stays",
    )
    return project


def test_facts_gate_and_a_changed_program_is_duelled(clockless, lab):
    """A duel needs the stored program, and no time of another day."""
    assert samples(clockless) == {"model/first": None, "model/second": None}
    for options in (("--perf-strict",), ("--perf-strict", "--benchmark-disable")):
        result = clockless.run(*options)
        assert result.code == 0, result.text
        assert result.line("model/first").endswith("identical program")
    clockless.edit("test_model.py", "x * 2", "jnp.outer(x, x) @ x")
    result = clockless.run()
    assert lab.duelled
    result.shows("REGRESSED  model/first", "matmul_flops", ", no time); program changed")


def test_a_call_that_is_far_slower_is_not_known_to_be(clockless):
    """Only what was timed can be held against its time; one that was is held as ever."""
    clockless.run("--perf-update=refresh", "-k", "second")
    stored = samples(clockless)
    assert (stored["model/first"], stored["model/second"] is None) == (None, False)
    plan = clockless.run("--perf-plan")
    assert plan.code == 0


def test_a_time_of_the_same_program_stays(project):
    """A quick refresh loses nothing that still holds; that of another program is gone."""
    project.write("test_model.py", TWO).record()
    before = samples(project)
    project.edit("test_model.py", "x + 1", "x + x")
    assert project.run(*QUICK).code == 0
    assert samples(project) == {"model/first": before["model/first"], "model/second": None}


def test_review_and_create_need_no_clock_either(project, lab):
    lab.instruments["asker"] = lambda: lambda _prompt: "y"
    project.write("test_model.py", model(step="x * 2"))
    assert project.run("--perf-update=create", "--benchmark-disable").code == 0
    project.edit("test_model.py", "x * 2", "jnp.exp(x)")
    assert project.run("--perf-update=review", "--benchmark-disable").code == 0
    assert samples(project) == {"model/step": None}
    assert project.run("--perf-strict").code == 0


def test_plain_python_without_a_clock(project):
    """Its programs and its calls are recorded, and judged with a clock and without."""
    project.write(
        "test_model.py",
        "import jax, jax.numpy as jnp\nstep = jax.jit(lambda x: x * 2)\n"
        "def test_body(gate):\n    gate(lambda x: step(x), jnp.ones(8), eager=True)\n",
    )
    assert project.run(*QUICK).code == 0
    for options in ((), ("--benchmark-disable",)):
        result = project.run("--perf-strict", *options)
        assert result.line("model/body").startswith("SAME"), result.text
