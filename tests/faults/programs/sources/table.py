"""A table that a scan writes row by row, in place."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

TURNS, ROWS, WIDTH = 64, 2000, 8


def write(table, given):
    """Put one row in its place."""
    place, row = given
    changed = jnp.tanh(row)
    return jax.lax.dynamic_update_index_in_dim(table, changed, place, 0), jnp.sum(row)


def run(table, places, rows):
    """Write all rows in turn."""
    return jax.lax.scan(write, table, (places, rows))


def build():
    """Make the walk and its arguments."""
    random = np.random.default_rng(0)
    table = random.normal(size=(ROWS, WIDTH)).astype(np.float32)
    places = random.integers(1, ROWS - 1, TURNS).astype(np.int32)
    rows = random.normal(size=(TURNS, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(run), args=(table, places, rows))
