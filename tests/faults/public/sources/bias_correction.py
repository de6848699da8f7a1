"""Adam, one operation after the other: its first moment is corrected by a power of the step number."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

DECAY = 0.9


def corrected(moment, count):
    """Divide by what is missing in a young average."""
    return moment / (1 - jnp.float32(DECAY) ** jnp.float32(count))


def step(params, moment, count, x):
    """Take one step without jit."""
    gradient = gradient_of(params, x)
    moment = DECAY * moment + (1 - DECAY) * gradient
    return params - 0.1 * corrected(moment, count), moment, count + 1


@jax.jit
def gradient_of(params, x):
    """Give the gradient."""
    return jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)


def build():
    """Make the step and its arguments."""
    return Computation(
        subject=step,
        args=(jnp.ones((8, 4)), jnp.zeros((8, 4)), 1, jnp.ones((16, 8))),
        next_args=lambda result, args: (*result, args[3]),
        eager=True,
    )
