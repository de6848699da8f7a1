"""What is a value and what is a part of the program: static arguments, Python numbers, numbers on the device.

A static argument is another program for each value; a Python number is a weakly typed argument, an array of one number a
strongly typed one, and to change from one to the other is another program, too.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_params, sizes, squared_error

CASES = Family("shapes")

SIZES = sizes(
    batch=(32, 4096),  # samples
    width=(64, 2048),  # features
    layers=(2, 8),  # of the perceptron
    rtol=(1e-4, 1e-2),
)
"""A perceptron [width, width] x layers."""


def forward_flops(size: Extent) -> int:
    """One product for each layer."""
    return 2 * size.layers * size.batch * size.width**2


def step_flops(size: Extent) -> int:
    """And two more on the way back; nobody asks for the gradient of the samples."""
    return 3 * forward_flops(size) - 2 * size.batch * size.width**2


def make_batch(size: Extent) -> tuple[Tree, jax.Array, jax.Array]:
    """Draw parameters, x and y [batch, width]."""
    draw = drawing()
    params = mlp_params(draw, size.width, size.layers)
    found: tuple[Tree, jax.Array, jax.Array] = jax.device_put(
        (params, draw((size.batch, size.width)), draw((size.batch, size.width)))
    )
    return found


@CASES.workload("rate-as-an-argument-vs-static", sizes=SIZES)
def new_rate(size: Extent) -> Computation:
    """A training step whose rate is another Python number at each step, against one with the rate compiled in."""

    def step(state: Tree, x: jax.Array, y: jax.Array, rate: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(state["params"])
        average = 0.9 * state["average"] + 0.1 * loss
        return {"params": descend(state["params"], grads, rate), "average": average}, loss

    params, x, y = make_batch(size)
    # A float32 from the start: what comes back is one, and 0.0 in its place would be another program at step 2.
    average = jax.device_put(np.float32(0))
    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        reference=jax.jit(step, static_argnames="rate", donate_argnums=0),
        args=({"params": params, "average": average}, x, y, 0.1),
        next_args=lambda result, args: (result[0], *args[1:3], 0.99 * args[3]),
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=step_flops(size),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "every step has another rate, and no step another program"),
            claim("aliased_bytes >= donated_bytes", "the state is reused"),
            claim("matmul_flops == analytic_flops", "one forward, one backward pass"),
            claim("xla_flops <= 1.05 * reference", "an argument costs no more than a constant"),
            claim("temp_bytes <= 1.05 * reference", "in memory neither"),
        ],
    )


@CASES.workload("bfloat16-scaled-by-a-python-number-vs-a-float32-scalar", sizes=SIZES)
def python_numbers(size: Extent) -> Computation:
    """Parameters in bfloat16, scaled by a Python number, against an array of float32."""

    def decayed(params: Tree, factor: Any) -> Tree:
        return jax.tree.map(lambda p: p * factor, params)

    def widened(params: Tree, factor: Any) -> Tree:
        return jax.tree.map(lambda p: (p * jnp.float32(factor)).astype(p.dtype), params)

    draw = drawing()
    params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), mlp_params(draw, size.width, size.layers))
    return Computation(
        subject=jax.jit(decayed, donate_argnums=0),
        reference=jax.jit(widened),
        args=(jax.device_put(params), 0.75),
        carry=0,
        amount=Amount(count=size.layers * size.width * (size.width + 1), unit="parameters"),
        rtol=1e-2,
        atol=1e-5,
        claims=[
            claim("compiles == 1", "a Python number is the same argument at each step"),
            claim("widened_bytes == 0", "a Python number takes the type of the array beside it"),
            claim("stablehlo_ops <= 0.8 * reference", "nothing is converted, there and back"),
        ],
    )
