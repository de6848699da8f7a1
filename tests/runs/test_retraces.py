"""A case that retraces: not recorded, and said before it is timed; or recorded, where it is by design."""

import pytest
from support.corpora import nightly

MODEL = """
import jax, jax.numpy as jnp
def step(x):
    return jax.jit(lambda x: jnp.tanh(x))(x)
def test_step(gate):
    gate(step, jnp.ones(3), {options})
"""


@pytest.fixture
def remade(project):
    """A function that is jitted anew by each call."""
    return project.write("test_model.py", MODEL.format(options="eager=True"))


def test_it_is_refused_before_it_is_timed(remade, monkeypatch):
    """The first calls show it; nothing is sampled, and no baseline is left."""
    monkeypatch.setattr("jaxgate.observe.measure_calls.sample", None)
    result = remade.run("--perf-update")
    assert result.code == 1
    result.shows(
        "INVALID  model/step",
        "expected 1 trace, found 3 (step 2 retraced: <lambda>: a new function object per call",
        "expected_traces=3 where it is by design",
    )
    assert not list(remade.path.glob("baselines/*/*/*.json"))


@nightly
def test_by_design_it_is_judged_like_any_other(remade):
    """However often its sample called it; a change that traces twice as often is red."""
    remade.edit("test_model.py", "eager=True", "eager=True, expected_traces=3")
    remade.record()
    again = remade.run()
    assert again.code == 0
    again.shows("1 case: 1 SAME")
    remade.edit("test_model.py", "(x)\ndef test", "(x) + jax.jit(lambda x: jnp.sin(x))(x)\ndef test")
    worse = remade.run("--benchmark-disable")
    assert worse.code == 1
    worse.shows("traces 5 against 3")
