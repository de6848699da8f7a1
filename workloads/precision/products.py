"""Products: how many bits the operands have, and in which type they are summed.

Two functions are compared in one precision, or the faster one has done less. What nobody asked for is a setting
(``jax_default_matmul_precision``), and part of the environment; what a product asks for itself is part of the program.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, mlp
from workloads.precision.layers import HIGHEST, SIZES, layer_flops, make_params, make_samples

CASES = Family("precision")


def in_full(params: Tree, x: jax.Array) -> jax.Array:
    """The perceptron, each of its products in full float32."""
    for layer in params:
        x = jnp.tanh(jnp.matmul(x, layer["kernel"], precision=HIGHEST) + layer["bias"])
    return x


def by_setting(params: Tree, x: jax.Array) -> jax.Array:
    """The perceptron, in the precision that is in force, which is full float32 here."""
    with jax.default_matmul_precision("highest"):
        return mlp(params, x)


@CASES.workload("float32-products-in-full-by-argument-vs-by-setting", sizes=SIZES)
def alike(size: Extent) -> Computation:
    """The same products, their precision asked for by each and by a setting: a comparison of equals."""
    return Computation(
        subject=jax.jit(in_full),
        reference=jax.jit(by_setting),
        args=(make_params(size), make_samples(size)),
        carry=1,
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=size.layers * layer_flops(size),
        # TF32 has 11 bits, and would be off by a thousandth.
        rtol=1e-5,
        atol=1e-5,
        claims=[
            claim("matmul_flops == analytic_flops", "one product for each layer"),
            claim("stablehlo_ops == reference", "a precision is an attribute of a product, not an operation"),
            claim("widened_bytes == 0", "nothing is wider than float32"),
            claim("temp_bytes <= reference", "nor is anything kept in another type besides"),
        ],
    )


def summed_wide(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """A product of bfloat16 operands whose sum is float32: x [batch, width]."""
    return jnp.matmul(x, kernel, preferred_element_type=jnp.float32)


def widened_first(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """The same sum, of operands that are made wider first."""
    return jnp.matmul(x.astype(jnp.float32), kernel.astype(jnp.float32), precision=HIGHEST)


@CASES.workload("bfloat16-product-summed-in-float32-vs-widened-first", sizes=SIZES)
def accumulated(size: Extent) -> Computation:
    """The type of the sum is asked for, against operands that are made wider for its sake."""
    return Computation(
        subject=jax.jit(summed_wide),
        reference=jax.jit(widened_first),
        args=(make_samples(size, jnp.bfloat16), make_params(size, jnp.bfloat16)[0]["kernel"]),
        batch=Batch(argument=0, size=size.batch),
        analytic_flops=layer_flops(size),
        # Products of bfloat16 numbers are exact in float32; a sum that is rounded to bfloat16 is off by 0.4 %.
        rtol=1e-3,
        atol=1e-3,
        claims=[
            claim("widened_bytes <= 0.6 * reference", "the result is wide, the operands are not"),
            claim("matmul_flops == analytic_flops", "one product"),
            claim("temp_bytes <= reference", "no wide copies of the operands"),
        ],
    )


def in_parts(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """A float32 product out of bfloat16 products: both operands as a coarse and a fine part, the finest left out.

    A cast to bfloat16 and back would not do: the compiler of GPUs takes both away, and the fine part with them.
    """

    def parts(array: jax.Array) -> tuple[jax.Array, jax.Array]:
        coarse = jax.lax.reduce_precision(array, exponent_bits=8, mantissa_bits=7)
        return coarse.astype(jnp.bfloat16), (array - coarse).astype(jnp.bfloat16)

    (x, fine_x), (kernel, fine_kernel) = parts(x), parts(kernel)
    return summed_wide(x, kernel) + (summed_wide(x, fine_kernel) + summed_wide(fine_x, kernel))
