"""vmap: one function of one example, batched by the transformation, against loops over the examples.

A Python loop is unrolled into a program that grows with the batch; ``lax.map`` keeps the program small and gives up
the batch. ``jax.vmap`` keeps both, and pays with memory: where it runs out, ``lax.map(batch_size=...)`` is between.
"""

from __future__ import annotations

from jaxgate.model import Case
from workloads.vmap import axes, chunks, examples, paths

CASES: tuple[Case, ...] = (*examples.CASES, *chunks.CASES, *axes.CASES, *paths.CASES)
