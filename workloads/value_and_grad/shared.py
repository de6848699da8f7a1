"""Where a second forward pass costs nothing, and where it does: layers written out in one program, and two programs.

Two equal passes in one program are one common subexpression: the compiler drops the second. It does not look into
loops, and not across programs.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.model import Amount, Batch, Case, Claim, Computation, at_least, at_most, cases, equal
from workloads.parts import Tree
from workloads.value_and_grad.network import SIZES, TOLERANCE, Size, make_batch, make_state, measured, plain_loss
from workloads.value_and_grad.placed import one_pass, train_step, two_passes


def written_out_loss(params: Tree, running: Tree, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """The loss of ``plain_loss`` without a loop: one copy of the layer for each."""
    for kernel in params["kernels"]:
        x = jnp.tanh(x @ kernel)
    loss, aux = measured(x @ params["head"], labels)
    return loss, {**aux, "running": running}


def written_out(size: Size) -> Computation:
    """One pass against two in one program, layers written out."""
    return Computation(
        subject=jax.jit(train_step(one_pass(written_out_loss)), donate_argnums=0),
        reference=jax.jit(train_step(two_passes(written_out_loss)), donate_argnums=0),
        args=jax.device_put((make_state(size), *make_batch(size))),
        next_args=lambda result, args: (result[0], *args[1:]),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        rtol=TOLERANCE,
        atol=TOLERANCE,
        # The gradient of the first layer's input is not needed; in a loop it is computed nevertheless.
        analytic_flops=3 * size.forward_flops - 2 * size.batch * size.width**2,
    )


def written_out_claims() -> tuple[Claim, ...]:
    """What the compiler makes of two equal passes, on any hardware."""
    return (
        equal("matmul_flops", to="analytic_flops", why="one forward, one backward pass"),
        equal("matmul_flops", to="reference", why="two equal passes without a loop are counted, and compiled, as one"),
        at_least(0.99, "xla_flops", why="the compiler shares them indeed"),
        at_most(1.01, "xla_flops", why="and one pass is no more work"),
    )


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
        next_args=lambda result, args: (result[0], *args[1:]),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        rtol=TOLERANCE,
        atol=TOLERANCE,
        eager=True,
    )


def two_programs_claims() -> tuple[Claim, ...]:
    """What one program gives over two, on any hardware."""
    return (
        equal("launches", to=1, why="the step returns loss and metrics with the new state"),
        at_most(0.5, "launches", why="a second program computes the metrics again"),
        equal("host_transfers", to=0, why="and nothing is sent to the device between"),
    )


CASES: tuple[Case, ...] = (
    *cases(
        "value_and_grad",
        "layers-written-out-in-one-pass-vs-two-that-are-shared",
        written_out,
        ({},),
        written_out_claims,
        sizes=SIZES,
    ),
    *cases(
        "value_and_grad",
        "loss-and-metrics-from-one-program-vs-two",
        two_programs,
        ({},),
        two_programs_claims,
        sizes=SIZES,
    ),
)
