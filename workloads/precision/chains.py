"""Chains of bfloat16 that one number can widen: what stands in them, and what is summed in them.

A Python number takes the type of what it meets (a weak type); a NumPy scalar has one of its own, and ``np.sqrt(128)``
is a ``np.float64``: all that follows is float32, twice the bytes, without a word.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from jaxgate import Alternative, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, normalise
from workloads.precision.layers import NARROW_RTOL, SIZES, layer_flops, make_params, make_samples

CASES = Family("precision")


def numbered(params: Tree, x: jax.Array) -> jax.Array:
    """A scaled, gated residual layer with Python numbers in it: x [batch, width]."""
    for layer in params:
        gate = x @ layer["kernel"] / math.sqrt(2.0) + layer["bias"]
        x = (x + 0.5 * gate * (1.0 + jnp.tanh(0.8 * gate))).astype(x.dtype)
    return x


def typed(params: Tree, x: jax.Array) -> jax.Array:
    """The same, every number an array of the type that it is meant to have."""
    root, half, one, slope = (jnp.asarray(number, x.dtype) for number in (math.sqrt(2.0), 0.5, 1.0, 0.8))
    for layer in params:
        gate = x @ layer["kernel"] / root + layer["bias"]
        x = x + half * gate * (one + jnp.tanh(slope * gate))
    return x


@CASES.workload("bfloat16-chain-with-python-numbers-vs-typed-ones", sizes=SIZES)
def chain(size: Extent) -> Computation:
    """Python numbers against typed ones."""
    return Computation(
        subject=jax.jit(numbered),
        reference=jax.jit(typed),
        args=(make_params(size, jnp.bfloat16), make_samples(size, jnp.bfloat16)),
        carry=1,
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=size.layers * layer_flops(size),
        rtol=3 * NARROW_RTOL,
        atol=3 * NARROW_RTOL,
        claims=[
            claim("widened_bytes == 0", "a Python number takes the type of what it meets"),
            claim("stablehlo_ops == reference", "and costs no operation more than a typed one"),
            claim("temp_bytes <= reference", "nor memory"),
            claim("matmul_flops == analytic_flops", "one product for each layer"),
        ],
    )


def normed(params: Tree, x: jax.Array) -> jax.Array:
    """Layers that are normalised with float32 sums, and narrow between: x [batch, width]."""
    for layer in params:
        level = normalise(x.astype(jnp.float32)).astype(x.dtype)
        x = x + jnp.tanh(level @ layer["kernel"] + layer["bias"])
    return x


def normed_wide(params: Tree, x: jax.Array) -> jax.Array:
    """The same, but what was widened for a sum stays wide."""
    wide = x.astype(jnp.float32)
    for layer in params:
        wide = wide + jnp.tanh(normalise(wide) @ layer["kernel"].astype(jnp.float32) + layer["bias"])
    return wide.astype(x.dtype)


@CASES.workload("bfloat16-layers-normalised-in-float32-vs-float32-from-there", sizes=SIZES)
def norm(size: Extent) -> Computation:
    """Sums need float32, products do not: widened for the sum, and narrow again; its alternative has half the samples."""
    params, x = make_params(size, jnp.bfloat16), make_samples(size, jnp.bfloat16)
    subject = jax.jit(normed)
    half = jax.ShapeDtypeStruct((size.batch // 2, size.width), x.dtype)
    return Computation(
        subject=subject,
        reference=jax.jit(normed_wide),
        alternatives={"half the samples": Alternative(function=subject, args=(params, half))},
        args=(params, x),
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=size.layers * layer_flops(size),
        rtol=3 * NARROW_RTOL,
        atol=3 * NARROW_RTOL,
        claims=[
            claim("widened_bytes <= 0.9 * reference", "samples are widened for their sums, parameters are not"),
            claim("widened_bytes <= 2 * alternatives", "twice the samples widen twice the bytes, and nothing besides"),
            claim("matmul_flops == analytic_flops", "one product for each layer"),
        ],
    )
