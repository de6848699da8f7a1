"""Losses and gradients of single examples: ``vmap`` of a function of one example against a loop over them.

An example is a short sequence [time, width]; its loss is a scalar, its gradient as large as all parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, mlp, mlp_params, over_samples, sizes, squared_error

CASES = Family("vmap")


Batched = Callable[[Tree, jax.Array, jax.Array], Any]
"""Of parameters, xs and ys [examples, time, width]: one result for each example, stacked."""

SIZES = sizes(width=(64, 1024), layers=(2, 4), time=(4, 128), examples=(24, 64))
"""How large the network, one example and the batch are."""


def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """Loss of one example: x and y [time, width]."""
    return squared_error(mlp(params, x), y)


def batched(function: Callable[..., Any]) -> Batched:
    """All examples in one: every operation gets one more axis."""
    return jax.vmap(function, in_axes=(None, 0, 0))


def looped(function: Callable[..., Any]) -> Batched:
    """One copy of the function for every example."""

    def over_examples(params: Tree, xs: jax.Array, ys: jax.Array) -> Any:
        results = [function(params, x, y) for x, y in zip(xs, ys, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)

    return over_examples


def mapped(function: Callable[..., Any]) -> Batched:
    """One example after the other, in a compiled loop."""
    return lambda params, xs, ys: jax.lax.map(lambda example: function(params, *example), (xs, ys))


def make_inputs(size: Extent) -> Any:
    """Draw parameters, xs and ys [examples, time, width]."""
    draw = drawing()
    params = mlp_params(draw, size.width, size.layers)
    shape = (size.examples, size.time, size.width)
    return jax.device_put((params, draw(shape), draw(shape)))


def forward_flops(size: Extent) -> int:
    """Of all examples: every layer multiplies each moment by a square matrix."""
    return 2 * size.examples * size.layers * size.time * size.width**2


def gradient_flops(size: Extent) -> int:
    """Forward, gradient of the kernel, gradient of the input (which the first layer does not need)."""
    return forward_flops(size) * (3 * size.layers - 1) // size.layers


# Accelerators may round the operands of a product, and not of every kernel alike.
RTOL = 1e-3

NAIVE = {"loop": looped, "lax.map": mapped}


SWEEP = ({"naive": "loop"}, {"naive": "lax.map"})


@CASES.workload("per-example-loss-vmap-vs-{naive}", sweep=SWEEP, sizes=SIZES)
def losses(size: Extent, *, naive: str) -> Computation:
    """One loss for each example."""
    args = make_inputs(size)
    return Computation(
        subject=jax.jit(batched(loss)),
        reference=jax.jit(NAIVE[naive](loss)),
        args=args,
        grow=over_samples(args, 1, 2),
        batch=Batch(argument=1, size=size.examples, unit="examples"),
        analytic_flops=forward_flops(size),
        rtol=RTOL,
        atol=1e-5,
        claims=claims(naive),
    )


@CASES.workload("per-example-gradients-vmap-vs-loop", sizes=SIZES)
def gradients(size: Extent) -> Computation:
    """One gradient for each example, all of them kept."""
    args = make_inputs(size)
    return Computation(
        subject=jax.jit(batched(jax.grad(loss))),
        reference=jax.jit(looped(jax.grad(loss))),
        args=args,
        grow=over_samples(args, 1, 2),
        batch=Batch(argument=1, size=size.examples, unit="examples"),
        analytic_flops=gradient_flops(size),
        rtol=RTOL,
        atol=1e-5,
        claims=(*claims("loop"), claim("temp_bytes <= reference", "every gradient is written where it belongs")),
    )


SAME_WORK = claim("matmul_flops == analytic_flops", "the same multiplications, each example once")
ONE_BODY = claim("stablehlo_ops <= 0.5 * reference", "vmap holds the function once, the loop once for each example")


def claims(naive: str) -> tuple[Claim, ...]:
    """What vmap must give over a loop, on any hardware."""
    if naive == "loop":
        return (ONE_BODY, SAME_WORK)
    return (claim("stablehlo_ops <= reference", "vmap adds no loop to the function"), SAME_WORK)
