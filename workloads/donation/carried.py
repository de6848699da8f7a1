"""Donation through a loop: several training steps in one call, the state carried by ``lax.scan``.

The loop keeps one state and updates it in place; donated, that one lies in the caller's own buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.donation.steps import SIZES, State, Step, make_inputs, step_flops, train_step
from workloads.parts import Extent

CASES = Family("donation")

STEPS = 3

Steps = Callable[[State, jax.Array, jax.Array], tuple[State, jax.Array]]


def scanned(step: Step) -> Steps:
    """Many steps in one call: xs and ys [steps, batch, width], losses [steps]."""

    def run(state: State, xs: jax.Array, ys: jax.Array) -> tuple[State, jax.Array]:
        state, losses = jax.lax.scan(lambda carry, batch: step(carry, *batch), state, (xs, ys))
        return state, losses

    return run


def looped(step: Step) -> Steps:
    """The same steps by a Python loop: one copy of the step for each."""

    def run(state: State, xs: jax.Array, ys: jax.Array) -> tuple[State, jax.Array]:
        losses = []
        for x, y in zip(xs, ys, strict=True):
            state, loss = step(state, x, y)
            losses.append(loss)
        return state, jnp.stack(losses)

    return run


@CASES.workload("momentum-steps-in-one-scan-donated-vs-copied", sizes=SIZES)
def many_steps(size: Extent) -> Computation:
    """The scan with its first state donated, against one that copies; the donated Python loop as the alternative."""
    step = train_step("momentum")
    state, x, y = make_inputs(size, "momentum")
    xs, ys = (jnp.stack([batch] * STEPS) for batch in (x, y))
    args: tuple[Any, ...] = (state, xs, ys)
    return Computation(
        subject=jax.jit(scanned(step), donate_argnums=0),
        reference=jax.jit(scanned(step)),
        alternatives={"a Python loop": Alternative(function=jax.jit(looped(step), donate_argnums=0), args=args)},
        args=args,
        carry=0,
        batch=Batch(argument=1, size=size.batch, axis=1),
        amount=Amount(count=STEPS * size.batch, unit="samples"),
        analytic_flops=STEPS * step_flops(size),
        claims=[
            claim("donated_bytes >= 1", "the first state is donated at all"),
            claim("aliased_bytes >= donated_bytes", "the loop's last state lies where its first one lay"),
            claim("peak_bytes <= 0.85 * reference", "the caller's state and the carried one share their memory"),
            claim("stablehlo_ops <= 0.5 * alternatives", "the loop holds one step, a Python loop each of them"),
            claim("matmul_flops == analytic_flops", "each step once: one forward, one backward pass"),
        ],
    )
