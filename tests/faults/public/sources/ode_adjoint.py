"""An equation solved in steps, and its gradient with a few states kept on the way."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

STEPS, KEPT, WIDTH = 64, 8, 128


def field(state, weights):
    """Give the slope."""
    return jnp.tanh(state @ weights)


def advance(state, weights):
    """Take one step of Heun's method."""
    slope = field(state, weights)
    return state + 0.05 * (slope + field(state + 0.1 * slope, weights))


def segment(state, weights):
    """Take the steps between two states that are kept."""
    return jax.lax.scan(lambda now, _: (advance(now, weights), None), state, None, length=STEPS // KEPT)[0]


def solved(state, weights):
    """Take all steps."""
    kept = jax.checkpoint(segment)
    return jax.lax.scan(lambda now, _: (kept(now, weights), None), state, None, length=KEPT)[0]


def build():
    """Make the gradient and its arguments."""
    gradient = jax.grad(lambda weights, state: jnp.sum(solved(state, weights) ** 2))
    return Computation(subject=jax.jit(gradient), args=(0.01 * jnp.ones((WIDTH, WIDTH)), jnp.ones((4, WIDTH))))
