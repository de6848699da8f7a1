"""A long recurrence, differentiated: the steps of a block are computed again on the way back."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

STEPS, BLOCK, WIDTH = 64, 8, 64


def advance(carry, _):
    """Go on by one step."""
    return jnp.sin(carry) + 0.1 * jnp.cos(carry), None


@jax.checkpoint
def block(carry, _):
    """Some steps, of which only the first state is kept."""
    return jax.lax.scan(advance, carry, None, length=BLOCK)


def loss_of(first):
    """Sum up the last state."""
    last, _ = jax.lax.scan(block, first, None, length=STEPS // BLOCK)
    return jnp.sum(last)


def build():
    """Make the gradient and its argument."""
    return Computation(subject=jax.jit(jax.value_and_grad(loss_of)), args=(jnp.ones((WIDTH, WIDTH)),))
