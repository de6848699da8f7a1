"""One step of a simulation, whose state has the time in it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

STEP = 0.002


def advance(state):
    """Advance by one step."""
    speed = state["speed"] - STEP * jnp.sin(state["angle"])
    time = state["time"] + jnp.float32(STEP)
    return {"angle": state["angle"] + STEP * speed, "speed": speed, "time": time}


def build():
    """Make the step and its first state."""
    state = {"angle": jnp.ones(16), "speed": jnp.zeros(16), "time": jnp.zeros((), jnp.float32)}
    return Computation(subject=jax.jit(advance), args=(state,), next_args=lambda result, _: (result,))
