"""A loop that writes one element of an array in each step, for a batch of arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

LENGTH, BATCH = 64, 64


def write(values, step):
    """Write behind the last step nowhere."""
    return values.at[step].set(1.0, mode="drop"), None


def filled(values):
    """Fill an array element by element."""
    last, _ = jax.lax.scan(write, values, jnp.arange(LENGTH))
    return last


def build():
    """Make the batched loop and its argument."""
    return Computation(subject=jax.jit(jax.vmap(filled)), args=(jnp.zeros((BATCH, LENGTH)),))
