"""Where a second forward pass costs nothing, and where it does: layers written out in one program, and two programs.

Two equal passes in one program are one common subexpression: the compiler drops the second. It does not look into
loops, and not across programs.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Tree
from workloads.value_and_grad.network import SIZES, TOLERANCE, Size, make_batch, make_state, measured, plain_loss
from workloads.value_and_grad.placed import one_pass, train_step, two_passes

CASES = Family("value_and_grad")


def written_out_loss(params: Tree, running: Tree, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """The loss of ``plain_loss`` without a loop: one copy of the layer for each."""
    for kernel in params["kernels"]:
        x = jnp.tanh(x @ kernel)
    loss, aux = measured(x @ params["head"], labels)
    return loss, {**aux, "running": running}


@CASES.workload("layers-written-out-in-one-pass-vs-two-that-are-shared", sizes=SIZES)
def written_out(size: Size) -> Computation:
    """One pass against two in one program, layers written out."""
    return Computation(
        subject=jax.jit(train_step(one_pass(written_out_loss)), donate_argnums=0),
        reference=jax.jit(train_step(two_passes(written_out_loss)), donate_argnums=0),
        args=jax.device_put((make_state(size), *make_batch(size))),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=TOLERANCE,
        atol=TOLERANCE,
        # The gradient of the first layer's input is not needed; in a loop it is computed nevertheless.
        analytic_flops=3 * size.forward_flops - 2 * size.batch * size.width**2,
        claims=[
            claim("matmul_flops == analytic_flops", "one forward, one backward pass"),
            claim("matmul_flops == reference", "two equal passes without a loop are counted, and compiled, as one"),
            claim("xla_flops >= 0.99 * reference", "the compiler shares them indeed"),
            claim("xla_flops <= 1.01 * reference", "and one pass is no more work"),
        ],
    )


@CASES.workload("loss-and-metrics-from-one-program-vs-two", sizes=SIZES)
def two_programs(size: Size) -> Computation:
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
