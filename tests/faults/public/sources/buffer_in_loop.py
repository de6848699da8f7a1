"""A loop that writes its results into one buffer."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

STEPS, WIDTH = 64, 256


def solve(first):
    """Keep every state."""

    def body(number, found):
        state, buffer = found
        state = jnp.sin(state) + 0.1
        return state, buffer.at[number].set(state)

    _, buffer = jax.lax.fori_loop(0, STEPS, body, (first, jnp.zeros((STEPS, WIDTH))))
    return buffer


def build():
    """Make the loop and its argument."""
    return Computation(subject=jax.jit(solve), args=(jnp.ones(WIDTH),))
