"""The columns of a table, each summed by segment."""

from __future__ import annotations

import jax
import numpy as np

from jaxgate.model.computation import Computation

ROWS, COLUMNS, SEGMENTS = 4096, 64, 512


def sums_of(table, of):
    """Sum each column by segment."""
    return jax.vmap(lambda column: jax.ops.segment_sum(column, of, SEGMENTS), in_axes=1, out_axes=1)(table)


def build():
    """Make the sums and their arguments."""
    random = np.random.default_rng(0)
    table = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    of = random.integers(0, SEGMENTS, ROWS).astype(np.int32)
    return Computation(subject=jax.jit(sums_of), args=(table, of))
