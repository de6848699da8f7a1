"""Each sample goes through one of two matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

BATCH, WIDTH = 16, 64


def chosen(x, first, second):
    """Multiply by the one or by the other, as the sum says."""
    return jax.lax.cond(jnp.sum(x) > 0, lambda: first @ x, lambda: second @ x)


def each(xs, first, second):
    """Do so for each sample."""
    return jax.lax.map(lambda x: chosen(x, first, second), xs)


def build():
    """Make the function and its arguments."""
    random = np.random.default_rng(0)
    first, second = jax.device_put(random.normal(size=(2, WIDTH, WIDTH)).astype(np.float32))
    xs = jax.device_put(random.normal(size=(BATCH, WIDTH)).astype(np.float32))
    return Computation(subject=jax.jit(each), args=(xs, first, second))
