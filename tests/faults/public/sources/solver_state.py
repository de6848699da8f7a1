"""A solver that keeps its step size in its state, and makes it longer after each step."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


class State(NamedTuple):
    """What a solver knows."""

    stepsize: jax.Array
    error: jax.Array


def init():
    """Begin with a step of 1."""
    return State(stepsize=jnp.ones((), jnp.float32), error=jnp.full((), jnp.inf, jnp.float32))


def update(params, state, x):
    """Take one step."""
    gradient = jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)
    new = params - state.stepsize * 0.1 * gradient
    return new, State(stepsize=jnp.minimum(state.stepsize * 1.1, jnp.float32(2.0)), error=jnp.sum(gradient**2))


def build():
    """Make the step and its arguments."""
    return Computation(
        subject=jax.jit(update),
        args=(jnp.ones((8, 4)), init(), jnp.ones((16, 8))),
        next_args=lambda result, args: (*result, args[2]),
    )
