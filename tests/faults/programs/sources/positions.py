"""A layer that adds a table of positions, which is an argument, and drops units by a key."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

LENGTH, WIDTH = 128, 32


def forward(params, table, x, key):
    """Add the positions, project, drop half of the units."""
    placed = x + table
    hidden = jnp.tanh(placed @ params["kernel"])
    kept = jax.random.bernoulli(key, 0.5, hidden.shape)
    return jnp.where(kept, 2.0 * hidden, 0.0)


def build():
    """Make the layer and its arguments."""
    random = np.random.default_rng(0)
    params = {"kernel": random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32)}
    table = random.normal(size=(LENGTH, WIDTH)).astype(np.float32)
    x = random.normal(size=(LENGTH, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(forward), args=(params, table, x, jax.random.key(0)))
