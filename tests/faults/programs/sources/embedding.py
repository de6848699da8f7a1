"""Rows of a table by index, bags of them averaged by segment_sum, and a running total."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

ROWS, WIDTH, ITEMS, BAGS = 256, 32, 96, 12


def average(table, items, bags):
    """Average the rows of each bag."""
    rows = jnp.take(table, items, axis=0)
    sums = jax.ops.segment_sum(rows, bags, num_segments=BAGS)
    sizes = jax.ops.segment_sum(jnp.ones(ITEMS), bags, num_segments=BAGS)
    return sums / sizes[:, None]


def forward(params, items, bags):
    """Average, project, accumulate over the bags."""
    bagged = average(params["table"], items, bags)
    projected = bagged @ params["kernel"]
    return jnp.cumsum(projected, axis=0)


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "table": random.normal(size=(ROWS, WIDTH)).astype(np.float32),
        "kernel": random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32),
    }
    items = random.integers(0, ROWS, ITEMS).astype(np.int32)
    bags = np.sort(np.arange(ITEMS) % BAGS).astype(np.int32)
    return Computation(subject=jax.jit(forward), args=(params, items, bags))
