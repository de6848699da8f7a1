"""Products: how many bits the operands have, and in which type they are summed.

Two functions are compared in one precision, or the faster one has done less. What nobody asked for is a setting
(``jax_default_matmul_precision``), and part of the environment; what a product asks for itself is part of the program.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.model import Alternative, Amount, Batch, Case, Claim, Computation, at_most, cases, equal
from workloads.parts import Tree, mlp
from workloads.precision.layers import HIGHEST, NARROW_RTOL, SIZES, Extent, cast, make_params, make_samples


def in_full(params: Tree, x: jax.Array) -> jax.Array:
    """The perceptron, each of its products in full float32."""
    for layer in params:
        x = jnp.tanh(jnp.matmul(x, layer["kernel"], precision=HIGHEST) + layer["bias"])
    return x


def by_setting(params: Tree, x: jax.Array) -> jax.Array:
    """The perceptron, in the precision that is in force, which is full float32 here."""
    with jax.default_matmul_precision("highest"):
        return mlp(params, x)


def alike(size: Extent) -> Computation:
    """The same products, their precision asked for by each and by a setting: a comparison of equals."""
    return Computation(
        subject=jax.jit(in_full),
        reference=jax.jit(by_setting),
        args=(make_params(size), make_samples(size)),
        next_args=lambda result, args: (args[0], result),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=size.layers * size.layer_flops,
        # TF32 has 11 bits, and would be off by a thousandth.
        rtol=1e-5,
        atol=1e-5,
    )


def alike_claims(**_: Any) -> tuple[Claim, ...]:
    """What holds between equals."""
    return (
        equal("matmul_flops", to="analytic_flops", why="one product for each layer"),
        equal("stablehlo_ops", to="reference", why="a precision is an attribute of a product, not an operation"),
        equal("widened_bytes", to=0, why="nothing is wider than float32"),
        at_most(1.0, "temp_bytes", why="nor is anything kept in another type besides"),
    )


def summed_wide(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """A product of bfloat16 operands whose sum is float32: x [batch, width]."""
    return jnp.matmul(x, kernel, preferred_element_type=jnp.float32)


def widened_first(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """The same sum, of operands that are made wider first."""
    return jnp.matmul(x.astype(jnp.float32), kernel.astype(jnp.float32), precision=HIGHEST)


def accumulated(size: Extent) -> Computation:
    """The type of the sum is asked for, against operands that are made wider for its sake."""
    return Computation(
        subject=jax.jit(summed_wide),
        reference=jax.jit(widened_first),
        args=(make_samples(size, jnp.bfloat16), make_params(size, jnp.bfloat16)[0]["kernel"]),
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=size.layer_flops,
        # Products of bfloat16 numbers are exact in float32; a sum that is rounded to bfloat16 is off by 0.4 %.
        rtol=1e-3,
        atol=1e-3,
    )


def accumulated_claims(**_: Any) -> tuple[Claim, ...]:
    """What the type of the sum must give."""
    return (
        at_most(0.6, "widened_bytes", why="the result is wide, the operands are not"),
        equal("matmul_flops", to="analytic_flops", why="one product"),
        at_most(1.0, "temp_bytes", why="no wide copies of the operands"),
    )


def in_parts(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """A float32 product out of bfloat16 products: both operands as a coarse and a fine part, the finest left out."""

    def parts(array: jax.Array) -> tuple[jax.Array, jax.Array]:
        coarse = array.astype(jnp.bfloat16)
        return coarse, (array - coarse.astype(jnp.float32)).astype(jnp.bfloat16)

    (x, fine_x), (kernel, fine_kernel) = parts(x), parts(kernel)
    return summed_wide(x, kernel) + (summed_wide(x, fine_kernel) + summed_wide(fine_x, kernel))


def split(size: Extent) -> Computation:
    """What ``precision="high"`` does on TPUs, written out, against one product in full."""
    return Computation(
        subject=jax.jit(in_parts),
        reference=jax.jit(lambda x, kernel: jnp.matmul(x, kernel, precision=HIGHEST)),
        args=(make_samples(size), make_params(size)[0]["kernel"]),
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=3 * size.layer_flops,
        rtol=1e-4,
        atol=1e-4,
    )


def split_claims(**_: Any) -> tuple[Claim, ...]:
    """What it costs."""
    return (
        equal("matmul_flops", to="analytic_flops", why="three products in place of one"),
        at_most(3.0, "matmul_flops", why="the product of both fine parts is below what float32 holds"),
        equal("argument_bytes", to="reference", why="the operands are the same"),
    )


def narrow(size: Extent) -> Computation:
    """Parameters and activations in bfloat16, against one that widens them; its alternative keeps float32 parameters."""
    params, x = make_params(size, jnp.bfloat16), make_samples(size, jnp.bfloat16)
    subject = jax.jit(mlp)

    def widened(params: Tree, x: jax.Array) -> jax.Array:
        return mlp(cast(params, jnp.float32), x.astype(jnp.float32)).astype(x.dtype)

    return Computation(
        subject=subject,
        reference=jax.jit(widened),
        alternatives={"float32": Alternative(function=subject, args=cast((params, x), jnp.float32))},
        args=(params, x),
        next_args=lambda result, args: (args[0], result),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=size.layers * size.layer_flops,
        rtol=NARROW_RTOL,
        atol=NARROW_RTOL,
    )


def narrow_claims(**_: Any) -> tuple[Claim, ...]:
    """What bfloat16 throughout must give."""
    return (
        equal("widened_bytes", to=0, why="nothing in the chain is wider than what it is given"),
        at_most(0.5, "argument_bytes", of="alternatives", why="half the bytes are kept, and read"),
        at_most(0.51, "output_bytes", of="alternatives", why="and come back"),
        equal("matmul_flops", to="analytic_flops", why="one product for each layer"),
    )


CASES: tuple[Case, ...] = (
    *cases("precision", "float32-products-in-full-by-argument-vs-by-setting", alike, ({},), alike_claims, sizes=SIZES),
    *cases(
        "precision",
        "bfloat16-product-summed-in-float32-vs-widened-first",
        accumulated,
        ({},),
        accumulated_claims,
        sizes=SIZES,
    ),
    *cases("precision", "float32-product-of-three-in-bfloat16-vs-at-once", split, ({},), split_claims, sizes=SIZES),
    *cases("precision", "bfloat16-parameters-and-activations-vs-widened", narrow, ({},), narrow_claims, sizes=SIZES),
)
