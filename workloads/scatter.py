"""Scatter and gather: rows added by segment, neighbours of a graph, a table written in place.

A sum by segment needs no product: the obvious way by a matrix of ones and zeros multiplies each row by each segment, and
holds that matrix. Messages along the edges of a graph are gathered and added, a matrix of all pairs of nodes is not needed,
forward or backward. A table in which some rows are written is donated, or each call copies all of it. Mistakes it
catches: the product in the place of the sum (`matmul_flops`, `temp_bytes`), messages of all pairs, rows written one by one
in a loop (`kernels`), a table that is no longer donated. Sources: JAX's documentation of `jax.ops.segment_sum` and of
`jax.numpy.ndarray.at`; reports jax#26227 and xla#22233 of scatters that a release made slow.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Batch, Computation, Family, Growth, claim, grows
from workloads.parts import Extent, drawing, sizes, stretched

CASES = Family("scatter")

SIZES = sizes(rows=(4096, 1_048_576), segments=(256, 16_384), width=(16, 128))
"""Rows (edges of a graph) of ``width`` numbers, and segments (nodes) that they are added to."""


def chosen(size: Extent, seed: int) -> np.ndarray[Any, Any]:
    """The segment of each row, in order; each has some."""
    drawn = np.random.default_rng(seed).integers(size.segments, size=size.rows - size.segments)
    return np.sort(np.concatenate([np.arange(size.segments), drawn])).astype(np.int32)


def summed(rows: jax.Array, of: jax.Array, segments: int) -> jax.Array:
    """Rows [rows, width] added by segment: [segments, width]."""
    return jax.ops.segment_sum(rows, of, num_segments=segments, indices_are_sorted=True)


@CASES.workload("sums-by-segment-vs-a-product-with-ones-and-zeros", sizes=SIZES)
def sums(size: Extent) -> Computation:
    """Sorted rows added by segment."""

    def multiplied(rows: jax.Array, of: jax.Array) -> jax.Array:
        return jax.nn.one_hot(of, size.segments).T @ rows

    args = jax.device_put((drawing()((size.rows, size.width)), chosen(size, 1)))
    return Computation(
        subject=jax.jit(lambda rows, of: summed(rows, of, size.segments)),
        reference=jax.jit(multiplied),
        args=args,
        grow=Growth(
            lambda rows: tuple(stretched(rows, array) for array in args),
            rows=[size.rows // 4, size.rows // 2, size.rows],
            claims=[grows("temp_bytes", "rows") <= 1, grows("stablehlo_ops", "rows") <= 0],
        ),
        batch=Batch(argument=0, size=size.rows, unit="rows"),
        rtol=1e-2,
        atol=1e-2,
        claims=[
            claim("matmul_flops == 0", "rows are added, nothing is multiplied"),
            claim("temp_bytes <= 0.1 * reference", "no matrix of rows by segments"),
        ],
    )


@CASES.workload("gradients-of-messages-along-edges-vs-between-all-pairs", sizes=SIZES)
def messages(size: Extent) -> Computation:
    """Each node takes the mean of its neighbours, through a layer; gradients of the layer's kernel."""
    to, source = chosen(size, 2), np.random.default_rng(3).integers(size.segments, size=size.rows).astype(np.int32)

    def along_edges(kernel: jax.Array, nodes: jax.Array, source: jax.Array, to: jax.Array) -> jax.Array:
        return jnp.tanh(summed((nodes @ kernel)[source], to, size.segments) / size.rows)

    def between_pairs(kernel: jax.Array, nodes: jax.Array, source: jax.Array, to: jax.Array) -> jax.Array:
        edges = jnp.zeros((size.segments, size.segments)).at[to, source].add(1.0)
        return jnp.tanh(edges @ (nodes @ kernel) / size.rows)

    draw = drawing()
    args = (draw((size.width, size.width)), draw((size.segments, size.width)), source, to)
    return Computation(
        subject=jax.jit(jax.grad(lambda *args: along_edges(*args).sum())),
        reference=jax.jit(jax.grad(lambda *args: between_pairs(*args).sum())),
        args=jax.device_put(args),
        batch=Batch(argument=3, size=size.rows, unit="edges"),
        analytic_flops=2 * 2 * size.segments * size.width**2,
        rtol=1e-2,
        atol=1e-3,
        claims=[
            claim("matmul_flops == analytic_flops", "the layer once forward and once backward, no pair of nodes"),
            claim("matmul_flops <= 0.5 * reference", "a product of all pairs is not there"),
        ],
    )


@CASES.workload("rows-of-a-table-written-in-place-vs-in-a-copy", sizes=SIZES)
def written(size: Extent) -> Computation:
    def write(table: jax.Array, rows: jax.Array, at: jax.Array) -> jax.Array:
        return table.at[at].set(rows, unique_indices=True)

    draw = drawing()
    some = size.segments // 4
    at = np.random.default_rng(4).permutation(size.rows)[:some].astype(np.int32)
    return Computation(
        subject=jax.jit(write, donate_argnums=0),
        reference=jax.jit(write),
        args=jax.device_put((draw((size.rows, size.width)), draw((some, size.width)), at)),
        carry=0,
        batch=Batch(argument=1, size=some, unit="rows"),
        claims=[
            claim("aliased_bytes >= donated_bytes", "the table stays in its memory"),
            claim("peak_bytes <= 0.7 * reference", "there is no second one"),
        ],
    )
