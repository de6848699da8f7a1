"""Where a second forward pass costs what it looks like: in a program of its own.

Two equal passes in one program are one common subexpression: the compiler drops the second. It does not look into
loops, and not across programs.
"""

from __future__ import annotations

from typing import Any

import jax

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree
from workloads.value_and_grad.network import SIZES, TOLERANCE, make_batch, make_state, plain_loss
from workloads.value_and_grad.placed import one_pass, train_step

CASES = Family("value_and_grad")


@CASES.workload("loss-and-metrics-from-one-program-vs-two", sizes=SIZES)
def two_programs(size: Extent) -> Computation:
    """A training loop's body on the host: one program, against one for the step and one for the metrics before it."""
    step = jax.jit(train_step(one_pass(plain_loss)))
    metrics_of = jax.jit(plain_loss)

    def one_call(state: Tree, x: jax.Array, labels: jax.Array) -> tuple[Tree, Tree]:
        state, metrics = step(state, x, labels)
        return state, metrics

    def two_calls(state: Tree, x: jax.Array, labels: jax.Array) -> tuple[Tree, Tree]:
        loss, aux = metrics_of(*state, x, labels)
        state, _ = step(state, x, labels)
        return state, {"loss": loss, "accuracy": aux["accuracy"]}

    args: tuple[Any, ...] = jax.device_put((make_state(size), *make_batch(size)))
    return Computation(
        subject=one_call,
        reference=two_calls,
        args=args,
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=TOLERANCE,
        atol=TOLERANCE,
        eager=True,
        claims=[
            claim("launches == 1", "the step returns loss and metrics with the new state"),
            claim("launches <= 0.5 * reference", "a second program computes the metrics again"),
            claim("host_transfers == 0", "and nothing is sent to the device between"),
        ],
    )
