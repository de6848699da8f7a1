"""A sampler whose warm-up hands the position on to the steps that count."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


def potential(z):
    """Energy of a normal distribution."""
    return 0.5 * jnp.sum(z["x"] ** 2) + 0.5 * z["scale"] ** 2


def first_position():
    """Where the chain begins."""
    return {"x": jnp.zeros(8), "scale": jnp.float32(1.0)}


def step(z, key):
    """Move along the gradient, with noise."""
    key, own = jax.random.split(key)
    gradient = jax.grad(potential)(z)
    moved = jax.tree.map(lambda value, slope: value - 0.1 * slope, z, gradient)
    noise = 0.1 * jax.random.normal(own, (9,))
    return {"x": moved["x"] + noise[:8], "scale": jnp.abs(moved["scale"] + noise[8])}, key


def build():
    """Make the step and its arguments."""
    return Computation(
        subject=jax.jit(step), args=(first_position(), jax.random.key(0)), next_args=lambda result, args: result
    )
