"""A learning rate that shrinks where the loss stands still: its running average is part of the state."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


def init():
    """Begin with no average."""
    return {"average": jnp.zeros((), jnp.float32), "scale": jnp.ones((), jnp.float32), "count": jnp.int32(0)}


def step(params, state, x):
    """Take one step, and note the loss."""
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((x @ p) ** 2))(params)
    average = (state["average"] * state["count"] + loss) / (state["count"] + 1)
    scale = jnp.where(loss > average, state["scale"] * 0.5, state["scale"])
    return params - 0.1 * scale * gradient, {"average": average, "scale": scale, "count": state["count"] + 1}


def build():
    """Make the step and its arguments."""
    return Computation(
        subject=jax.jit(step),
        args=(jnp.ones((8, 4)), init(), jnp.ones((16, 8))),
        next_args=lambda result, args: (*result, args[2]),
    )
