"""Rows of a table by index, each with its neighbours, and their sums added to a table of sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

ROWS, WIDTH, EDGES = 512, 64, 4096


def messages(table, source, to):
    """Add a function of each source's row to its target's."""
    rows = jnp.take(table, source, axis=0)
    return jnp.zeros((ROWS, WIDTH)).at[to].add(jnp.tanh(rows))


def build():
    """Make the sums and their arguments."""
    random = np.random.default_rng(0)
    table = random.normal(size=(ROWS, WIDTH)).astype(np.float32)
    source, to = (random.integers(0, ROWS, EDGES).astype(np.int32) for _ in range(2))
    return Computation(subject=jax.jit(messages), args=(table, source, to))
