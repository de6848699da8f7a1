"""Noise for an array that is divided over devices, made where it is needed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model.computation import Computation

ROWS, WIDTH = 64, 128


def noisy(key, x):
    """Add noise."""
    return x + jax.random.normal(key, x.shape)


def build():
    """Make the function and its arguments."""
    lie = NamedSharding(Mesh(np.array(jax.devices()[:8]), ("data",)), P("data"))
    x = jax.device_put(jnp.ones((ROWS, WIDTH)), lie)
    return Computation(subject=jax.jit(noisy, out_shardings=lie), args=(jax.random.key(0), x))
