"""The largest batch of a language model's training step on its device, with remat and without.

What a person asks of a chip before a run: how many texts of a step fit. It is found by compiling, so that a chip that is
not there answers, too (`docs/targets.md`). On hardware the budget is the memory of one device; a CPU has no such limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxgate import Computation, Family, MaxBatch, claim
from workloads.parts import Tree
from workloads.training import lm
from workloads.training.deep import at_once, donating, in_one_loop, make_args, shapes
from workloads.training.states import ALWAYS, stepping
from workloads.training.transformer import recomputed_flops

CASES = Family("training")

TIMES = 4
"""How many times the batch remat must make room for. Seen 2026-11-24: for a v5e 68 texts against 8 (libtpu 0.0.42) and 12 (0.0.50)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A model, and how its largest batch is looked for."""

    model: lm.Size  # its batch is what the step is compared at
    budget_bytes: int | None  # memory; `None` for that of the device
    step: int  # the largest batch is a multiple of it
    limit: int  # more texts than fit with remat, on any device

    def args_at(self, batch: int) -> tuple[Any, ...]:
        """Shapes of the arguments at another batch."""
        tokens = jax.ShapeDtypeStruct((batch, self.model.tokens), jnp.int32)
        return *shapes(self.model), tokens, tokens


SIZES: dict[Literal["small", "full"], Fitted] = {
    "small": Fitted(
        model=lm.Size(batch=2, tokens=32, vocabulary=128, width=32, layers=8, heads=2),
        budget_bytes=64 << 20,
        step=32,
        limit=1024,
    ),
    "full": Fitted(
        model=lm.Size(
            batch=4, tokens=1024, vocabulary=32768, width=1024, layers=8, heads=8, dtype="bfloat16", tolerance=5e-2
        ),
        budget_bytes=None,
        step=4,
        limit=1024,
    ),
}


def computed_again(layer: Any, x: jax.Array, layers: Tree) -> jax.Array:
    """One loop over all layers, of which only the inputs are kept for the way back."""
    # Inside a loop nothing can merge the two computations, so the barrier against it would only cost.
    return in_one_loop(jax.checkpoint(layer, prevent_cse=False), x, layers)


@CASES.workload("lm-step-with-remat-largest-batch-in-memory-vs-plain", sizes=SIZES, target_sizes=["full"])
def largest(size: Fitted) -> Computation:
    """The step with its layers computed again, against the one that keeps them; both asked for their largest batch."""
    model = size.model
    again = model.layers * recomputed_flops(model.batch, model.tokens, model.width)
    step = stepping(
        donating(model, computed_again, at_once),
        donating(model, in_one_loop, at_once),
        make_args(model),
        flops=model.blocks_flops + again + 3 * model.logits_flops,
        amount=model.amount,
        tolerance=model.tolerance,
        claims=[
            *ALWAYS,
            claim(f"largest_batch >= {TIMES} * reference", "memory that no layer keeps is room for texts"),
            claim(f"matmul_flops <= {4 / 3} * reference", "for at most one forward pass more"),
        ],
    )
    asked = MaxBatch(budget_bytes=size.budget_bytes, args_at=size.args_at, step=size.step, limit=size.limit)
    return replace(step, max_batch=asked)
