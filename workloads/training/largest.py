"""The largest batch of a language model's training step on its device, with remat and without.

What a person asks of a chip before a run: how many texts of a step fit. It is found by compiling, so that a chip that is
not there answers, too (`docs/targets.md`). On hardware the budget is the memory of one device; a CPU has no such limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Computation, Family, MaxBatch, claim
from workloads.parts import Extent, Tree, sizes
from workloads.training import lm
from workloads.training.deep import at_once, donating, in_one_loop, make_args, shapes
from workloads.training.states import ALWAYS, stepping
from workloads.training.transformer import recomputed_flops

CASES = Family("training")

TIMES = 4
"""How many times the batch remat must make room for. Seen 2026-11-24: for a v5e 68 texts against 8 (libtpu 0.0.42) and 12 (0.0.50)."""

SIZES = sizes(
    batch=(2, 4),  # at which the step is compared
    tokens=(32, 1024),
    vocabulary=(128, 32768),
    width=(32, 1024),
    layers=8,
    heads=(2, 8),
    dtype=("float32", "bfloat16"),
    tolerance=(1e-3, 5e-2),
    budget_bytes=(64 << 20, None),  # memory; `None` for that of the device
    step=(32, 4),  # the largest batch is a multiple of it
    limit=1024,  # more texts than fit with remat, on any device
)


def computed_again(layer: Any, x: jax.Array, layers: Tree) -> jax.Array:
    """One loop over all layers, of which only the inputs are kept for the way back."""
    # Inside a loop nothing can merge the two computations, so the barrier against it would only cost.
    return in_one_loop(jax.checkpoint(layer, prevent_cse=False), x, layers)


@CASES.workload("lm-step-with-remat-largest-batch-in-memory-vs-plain", sizes=SIZES, target_sizes=["full"])
def largest(model: Extent) -> Computation:
    """The step with its layers computed again, against the one that keeps them; both asked for their largest batch."""
    again = model.layers * recomputed_flops(model.batch, model.tokens, model.width)
    step = stepping(
        donating(model, computed_again, at_once),
        donating(model, in_one_loop, at_once),
        make_args(model),
        flops=lm.blocks_flops(model) + again + 3 * lm.logits_flops(model),
        amount=lm.amount(model),
        tolerance=model.tolerance,
        claims=[
            *ALWAYS,
            claim(f"largest_batch >= {TIMES} * reference", "memory that no layer keeps is room for texts"),
            claim(f"matmul_flops <= {4 / 3} * reference", "for at most one forward pass more"),
        ],
    )

    def args_at(batch: int) -> tuple[Any, ...]:
        tokens = jax.ShapeDtypeStruct((batch, model.tokens), jnp.int32)
        return *shapes(model), tokens, tokens

    asked = MaxBatch(budget_bytes=model.budget_bytes, args_at=args_at, step=model.step, limit=model.limit)
    return replace(step, max_batch=asked)
