"""precision: how many bits products, sums, parameters and activations have, and who decides it.

**Products** — full float32 asked for by each product against the same by `jax.default_matmul_precision` — a comparison
of equals, with a tolerance that TF32 does not meet; the type of the sum by `preferred_element_type` against operands
widened first.

**Chains** — Python numbers take the type of what they meet, `np.sqrt(2)` is a `np.float64` and makes the rest float32;
sums that are widened for a normalisation and come back. Source: JAX's pages on type promotion and on
`jax.default_matmul_precision`.

**Training** — bfloat16 products with float32 parameters and momentum, donated; float16 with a loss scale that follows
overflow; gradients of 128 micro-batches summed in float32 (Micikevicius et al., 2018), each against float32 throughout.
Mistakes: parameters or sums kept in bfloat16 (updates and terms below its last bit are lost: INVALID), samples that are
not cast and widen every kernel, TF32 on one side, a scale that comes back as a Python number and retraces.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import (
    Extent,
    Tree,
    another,
    descend,
    drawing,
    mlp,
    mlp_params,
    normalise,
    over_samples,
    sizes,
    squared_error,
)

CASES = Family("precision")

HIGHEST = jax.lax.Precision.HIGHEST
"""Products in full float32: what is asked for where nothing is said is TF32 on some GPUs, bfloat16 on TPUs."""

NARROW_RTOL = 2e-2
"""bfloat16 has 8 bits; a compiler may keep more of them on one side than on the other."""

SIZES = sizes(
    batch=(64, 4096),  # samples
    width=(128, 4096),  # numbers of each layer
    layers=(3, 4),  # of the perceptron
    parts=128,  # micro-batches that a sum of gradients has
)
"""A multi-layer perceptron [width, width] x layers, and the samples of one call."""


def cast(tree: Tree, dtype: Any) -> Tree:
    """All arrays of a tree in one type."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


def make_params(size: Extent, dtype: Any = jnp.float32) -> Tree:
    return jax.device_put(cast(mlp_params(drawing(), size.width, size.layers), dtype))


def make_samples(size: Extent, dtype: Any = jnp.float32, *, count: int = 1) -> Any:
    draw = drawing(1)
    drawn = tuple(draw((size.batch, size.width)).astype(dtype) for _ in range(count))
    return jax.device_put(drawn if count > 1 else drawn[0])


# Products.


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
        # TF32 has 11 bits, and would be off by a thousandth.
        rtol=1e-5,
        atol=1e-5,
        claims=[
            claim("matmul_flops == reference", "one product for each layer"),
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
    return Computation(
        subject=jax.jit(summed_wide),
        reference=jax.jit(widened_first),
        args=(make_samples(size, jnp.bfloat16), make_params(size, jnp.bfloat16)[0]["kernel"]),
        batch=Batch(argument=0, size=size.batch),
        # Products of bfloat16 numbers are exact in float32; a sum that is rounded to bfloat16 is off by 0.4 %.
        rtol=1e-3,
        atol=1e-3,
        claims=[
            claim("widened_bytes <= 0.6 * reference", "the result is wide, the operands are not"),
            claim("matmul_flops == reference", "one product"),
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


# Chains of bfloat16 that one number can widen.


def numbered(params: Tree, x: jax.Array) -> jax.Array:
    """A scaled, gated residual layer with Python numbers in it: x [batch, width]."""
    for layer in params:
        gate = x @ layer["kernel"] / math.sqrt(2.0) + layer["bias"]
        x = (x + 0.5 * gate * (1.0 + jnp.tanh(0.8 * gate))).astype(x.dtype)
    return x


def typed(params: Tree, x: jax.Array) -> jax.Array:
    root, half, one, slope = (jnp.asarray(number, x.dtype) for number in (math.sqrt(2.0), 0.5, 1.0, 0.8))
    for layer in params:
        gate = x @ layer["kernel"] / root + layer["bias"]
        x = x + half * gate * (one + jnp.tanh(slope * gate))
    return x


@CASES.workload("bfloat16-chain-with-python-numbers-vs-typed-ones", sizes=SIZES)
def chain(size: Extent) -> Computation:
    return Computation(
        subject=jax.jit(numbered),
        reference=jax.jit(typed),
        args=(make_params(size, jnp.bfloat16), make_samples(size, jnp.bfloat16)),
        carry=1,
        batch=Batch(argument=1, size=size.batch),
        rtol=3 * NARROW_RTOL,
        atol=3 * NARROW_RTOL,
        claims=[
            claim("widened_bytes == 0", "a Python number takes the type of what it meets"),
            claim("stablehlo_ops == reference", "and costs no operation more than a typed one"),
            claim("temp_bytes <= reference", "nor memory"),
            claim("matmul_flops == reference", "one product for each layer"),
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
        alternatives=another("half the samples", subject, (params, half)),
        args=(params, x),
        batch=Batch(argument=1, size=size.batch),
        rtol=3 * NARROW_RTOL,
        atol=3 * NARROW_RTOL,
        claims=[
            claim("widened_bytes <= 0.9 * reference", "samples are widened for their sums, parameters are not"),
            claim("widened_bytes <= 2 * alternatives", "twice the samples widen twice the bytes, and nothing besides"),
            claim("matmul_flops == reference", "one product for each layer"),
        ],
    )


# Training in mixed precision.

RATE, MOMENTUM = 0.1, 0.9
FIRST_SCALE = 2.0**10
MORE = 4  # times the samples of a step that its micro-batches have together
LASTS = 200  # steps without overflow after which the scale is doubled


def loss_in(dtype: Any) -> Callable[..., Any]:
    """The error of the perceptron: its products in one type, the error itself in float32."""

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        found = mlp(cast(params, dtype), x.astype(dtype))
        return squared_error(found.astype(jnp.float32), y)

    return loss


def momentum_step(dtype: Any) -> Callable[..., Any]:
    def step(state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(loss_in(dtype))(state["params"], x, y)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, state["velocity"], grads)
        return {"params": descend(state["params"], velocity, RATE), "velocity": velocity}, loss

    return step


@CASES.workload("bfloat16-step-with-float32-state-vs-float32", sizes=SIZES)
def mixed(size: Extent) -> Computation:
    params = make_params(size)
    args = {"params": params, "velocity": jax.tree.map(jnp.zeros_like, params)}, *make_samples(size, count=2)
    return Computation(
        subject=jax.jit(momentum_step(jnp.bfloat16), donate_argnums=0),
        reference=jax.jit(momentum_step(jnp.float32)),
        args=args,
        grow=over_samples(args, 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        # A gradient is off by a few per cent of the largest, which is 1e-3; a parameter of 0.3 that is kept in bfloat16
        # by up to 1e-3.
        rtol=2e-3,
        atol=1e-4,
        claims=[
            claim("widened_bytes <= 0.7 * donated_bytes", "gradients and the error are widened, once"),
            claim("argument_bytes == reference", "the state is float32"),
            claim("output_bytes == reference", "and comes back as such"),
            claim("aliased_bytes >= donated_bytes", "where it was"),
            claim("donated_bytes >= 1", "it is donated at all"),
            claim("matmul_flops == reference", "one forward, one backward pass"),
        ],
    )


def scaled_step(dtype: Any) -> Callable[..., Any]:
    """One step with a loss scale that halves where gradients overflow, and doubles when they long have not."""

    def step(state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        params, scale = state["params"], state["scale"]
        scaled, grads = jax.value_and_grad(lambda p: scale * loss_in(dtype)(p, x, y))(params)
        grads = jax.tree.map(lambda grad: grad / scale, grads)
        finite = jnp.all(jnp.stack([jnp.isfinite(grad).all() for grad in jax.tree.leaves(grads)]))
        good = jnp.where(finite, state["good"] + 1, 0)
        params = jax.tree.map(lambda new, old: jnp.where(finite, new, old), descend(params, grads, RATE), params)
        grown = jnp.where(good % LASTS == 0, 2.0, 1.0)
        return {"params": params, "scale": scale * jnp.where(finite, grown, 0.5), "good": good}, scaled / scale

    return step


@CASES.workload("float16-step-with-a-loss-scale-vs-float32", sizes=SIZES)
def scaled(size: Extent) -> Computation:
    state = {"params": make_params(size), "scale": jnp.float32(FIRST_SCALE), "good": jnp.int32(0)}
    return Computation(
        subject=jax.jit(scaled_step(jnp.float16), donate_argnums=0),
        reference=jax.jit(scaled_step(jnp.float32)),
        args=(state, *make_samples(size, count=2)),
        carry=0,
        # A sample that overflows leaves all parameters as they were, but is seen in the error.
        batch=Batch(argument=1, size=size.batch),
        rtol=1e-3,
        atol=2e-5,
        claims=[
            claim("widened_bytes <= 1.4 * donated_bytes", "gradients and the error are widened, once"),
            claim("argument_bytes == reference", "the state is float32"),
            claim("aliased_bytes >= donated_bytes", "and is reused, the scale with it"),
            claim("donated_bytes >= 1", "it is donated at all"),
            claim("host_callbacks == 0", "whether gradients are finite is decided on the device"),
            claim("matmul_flops == reference", "one forward, one backward pass"),
        ],
    )


def summed(params: Tree, x: jax.Array, y: jax.Array, *, parts: int) -> Tree:
    """Gradients of micro-batches, each in bfloat16, summed in float32: x and y [batch, width]."""

    def add(total: Tree, part: tuple[jax.Array, jax.Array]) -> tuple[Tree, None]:
        grads = jax.grad(loss_in(jnp.bfloat16))(params, *part)
        return jax.tree.map(lambda t, g: t + g, total, grads), None

    micro = jax.tree.map(lambda a: a.reshape(parts, -1, a.shape[-1]), (x, y))
    zero = jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params)
    total, _ = jax.lax.scan(add, zero, micro)
    return jax.tree.map(lambda t: t / parts, total)


@CASES.workload("bfloat16-gradients-summed-in-float32-vs-float32-at-once", sizes=SIZES)
def accumulation(size: Extent) -> Computation:
    """A sum over micro-batches in float32, of bfloat16 gradients, against the whole batch in float32.

    Gradients of one sign, as at the start of a training: a bfloat16 sum stops growing where a term is less than half
    of its last bit.
    """
    size = size.but(batch=MORE * size.batch)
    x, y = make_samples(size, count=2)
    params = make_params(size, jnp.bfloat16)
    return Computation(
        subject=jax.jit(lambda params, x, y: summed(params, x, y, parts=size.parts)),
        reference=jax.jit(lambda params, x, y: jax.grad(loss_in(jnp.float32))(cast(params, jnp.float32), x, y)),
        args=(params, jnp.abs(x), y + 3),
        batch=Batch(argument=1, size=size.batch),
        rtol=1e-2,
        atol=1e-4,
        claims=[
            claim("matmul_flops == reference", "the same products on both sides"),
            claim("output_bytes == reference", "gradients come back in float32"),
        ],
    )
