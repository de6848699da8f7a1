"""vmap: one function of one example, batched by the transformation, against loops over the examples.

One function of one example, batched by `jax.vmap`, against a Python loop and against `lax.map`: losses and gradients of
single examples, maps nested over time and batch, ensembles with shared data (`in_axes=(0, None)`), reads of a shared
table, and Monte-Carlo paths with a typed key each. A Python loop is unrolled, so the program grows with the batch; vmap
holds the function once and multiplies all examples at once (`stablehlo_ops`, `matmul_flops`, and for token by token
scores `run_ns`). Its price is memory: per-example gradients are as large as all parameters, times the batch.
`lax.map(batch_size=...)` is between the two: a chunk of gradients at a time (`temp_bytes`), a program that does not
grow with the number of examples, and the examples that fill no chunk are not dropped (the sizes leave some over on
purpose). Mistakes it catches: the loop sneaks back; all examples at once where chunks were meant; gradients kept where
only norms are wanted; a shared argument tiled; a batch cut to whole chunks; numbers drawn by Python while tracing,
which are constants of the program; one key for all paths. Sources: JAX documentation, "Automatic vectorization",
"Pseudorandom numbers", and the reference of `jax.lax.map`. Not gated: `lax.map` that forgets its `batch_size` needs
less memory and more time; only the clock sees it.
"""

from __future__ import annotations

from jaxgate import Case
from workloads.vmap import axes, chunks, examples, paths

CASES: tuple[Case, ...] = (*examples.CASES, *chunks.CASES, *axes.CASES, *paths.CASES)
