"""A plain function that jits another one at each of its calls."""

from __future__ import annotations

MODEL = """
import jax
import jax.numpy as jnp

inner = jax.jit(lambda w, x: jnp.tanh(x @ w))


def step(w, x):
    return inner(w, x) + 1


def test_step(gate):
    gate(step, jnp.eye(8), jnp.ones((4, 8)))
"""
ANEW = "jax.jit(lambda w, x: jnp.tanh(x @ w))(w, x)"


def test_a_jit_that_is_made_anew_at_each_call_is_red(project):
    """Under the gate's own jit it compiles once; the loop that calls it traces at each step."""
    project.write("test_model.py", MODEL).record()
    project.run("--perf-strict", "--benchmark-disable").counts(passed=1)
    project.edit("test_model.py", "return inner(w, x)", f"return {ANEW}")
    result = project.run("--benchmark-disable")
    result.counts(failed=1)
    result.shows("remade_jits 1 against 0", "jitted anew at each call, and traced: <lambda> at test_model.py:")
    assert project.run("--perf-update", "--perf-why=by design").code == 0
    project.run("--benchmark-disable").counts(passed=1)
