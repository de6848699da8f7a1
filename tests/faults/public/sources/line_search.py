"""A line search outside of jit: halve the step until the loss falls."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


def loss_of(params, x):
    """Average the squares."""
    return jnp.mean((x @ params) ** 2)


def is_too_long(params, gradient, x, length):
    """Whether a step of this length makes the loss larger."""
    return loss_of(params - length * gradient, x) > loss_of(params, x)


def halved(length):
    """Half of a length."""
    return length * 0.5


@partial(jax.jit, static_argnums=(0, 1))
def search(condition, body, first, *about):
    """Go on while the condition holds."""
    return jax.lax.while_loop(lambda length: condition(*about, length), body, first)


def step(params, x):
    """Take one step."""
    gradient = jax.grad(loss_of)(params, x)
    length = search(is_too_long, halved, jnp.float32(8.0), params, gradient, x)
    return params - length * gradient


def build():
    """Make the step and its arguments."""
    return Computation(
        subject=step,
        args=(jnp.ones((8, 4)), jnp.ones((16, 8))),
        next_args=lambda result, args: (result, args[1]),
        eager=True,
    )
