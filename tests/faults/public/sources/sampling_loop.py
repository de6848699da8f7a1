"""A loop of a sampler in Python, around the step of a library."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

STEPS = 4


def kernel(position, key):
    """Take one step of a random walk with a gradient."""
    key, own = jax.random.split(key)
    gradient = jax.grad(lambda z: jnp.sum(z**2))(position)
    return position - 0.1 * gradient + 0.1 * jax.random.normal(own, position.shape), key


STEP = jax.jit(kernel)


def chain(position, key):
    """Take some steps."""
    for _ in range(STEPS):
        position, key = STEP(position, key)
    return position


def build():
    """Make the loop and its arguments."""
    return Computation(subject=chain, args=(jnp.ones(8), jax.random.key(0)), eager=True)
