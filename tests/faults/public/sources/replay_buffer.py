"""A replay buffer of a learner: each step overwrites the oldest experience."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

SIZE, ADDED, WIDTH = 1024, 8, 16


def add(buffer, batch):
    """Write a batch over the oldest entries."""
    data = jax.lax.dynamic_update_slice(buffer["data"], batch, (buffer["next"], 0))
    return {"data": data, "next": (buffer["next"] + ADDED) % SIZE}


def build():
    """Make the step and its arguments."""
    buffer = {"data": jnp.zeros((SIZE, WIDTH)), "next": jnp.int32(0)}
    return Computation(
        subject=jax.jit(add, donate_argnums=0),
        args=(buffer, jnp.ones((ADDED, WIDTH))),
        next_args=lambda result, args: (result, args[1]),
    )
