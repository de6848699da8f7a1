"""Who jits a function is part of its baseline: a decorator that is lost is red, though the gate jits what is plain."""

from __future__ import annotations

import pytest

MODEL = """
import functools, jax, jax.numpy as jnp

def logged(function):
    @functools.wraps(function)
    def called(*args):
        return function(*args)
    return called

{decorator}
def loss(w, x):
    return w * jnp.mean(jnp.tanh(x @ w) ** 2)
{after}
class Model:
    {method}
    def loss(self, w, x):
        return w * jnp.mean(jnp.tanh(x @ w) ** 2)

def test_loss(gate):
    gate({gated}, jnp.ones((64, 8)), jnp.ones((32, 64)){options})
"""
PARTS = {"decorator": "", "after": "", "method": "", "gated": "loss", "options": ""}
SELF = "@functools.partial(jax.jit, static_argnums=0)"


@pytest.fixture
def moved(project):
    """Records a project as it was, and runs it as it is now."""

    def run(before, now):
        project.write("test_model.py", MODEL.format(**PARTS | before)).record()
        return project.write("test_model.py", MODEL.format(**PARTS | now)).run()

    return run


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"decorator": "@jax.jit"}, {}),
        ({"after": "loss = jax.jit(loss)"}, {}),
        ({"decorator": "@logged\n@jax.jit"}, {"decorator": "@logged"}),
        ({"method": SELF, "gated": "Model().loss"}, {"gated": "Model().loss"}),
    ],
    ids=["decorator", "by hand", "below another decorator", "method"],
)
def test_a_function_that_is_jitted_no_more_is_red(moved, before, now):
    """The program is the same, and nobody compiles it but the gate."""
    found = moved(before, now)
    found.counts(failed=1)
    found.shows("found     jitted 0 against 1", "culprit   the function is no longer jitted by its own code")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"options": ", donate='w'"}, {"options": ", donate='w'"}),
        ({"decorator": "@jax.jit"}, {"after": "loss = jax.jit(loss)"}),
        ({"decorator": "@jax.jit"}, {"decorator": "@logged\n@jax.jit"}),
        ({}, {"decorator": "@jax.jit"}),
    ],
    ids=["the gate jits", "otherwise", "behind a wrapper", "jitted now"],
)
def test_who_jits_in_another_way_is_no_matter(moved, before, now):
    """A plain function stays one, a jitted one may be written otherwise, and a plain one may become jitted."""
    moved(before, now).counts(passed=1)
