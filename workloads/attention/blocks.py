"""Attention that never holds all scores: over blocks of keys, in a window, and as one Pallas kernel.

A running maximum and a running sum make softmax possible block by block (Rabe and Staats, 2021): memory grows with the
text, not with its square. In the backward pass that is true only if blocks are computed again (``jax.checkpoint``):
else the scan keeps the scores of each. A window that is only a mask saves nothing; in blocks it saves the products.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from jaxgate import Amount, Batch, Claim, Computation, Family, Growth, claim, grows
from workloads.attention.formula import (
    BACKWARD,
    FORWARD,
    HIDDEN,
    SIZES,
    Mask,
    by_hand,
    causal,
    gradients,
    longer,
    make_args,
    materialised,
    onwards,
    products_flops,
    shapes,
    weighted,
)
from workloads.kernels import kernel_call
from workloads.parts import Extent, another

CASES = Family("attention")

AGAIN = 1  # the scores are made once more in the backward pass

State = tuple[jax.Array, jax.Array, jax.Array]
"""Largest score, sum of weights [batch, heads, time], and weighted values [batch, heads, time, head]; float32."""


def chunked(query: jax.Array, key: jax.Array, value: jax.Array, *, mask: Mask, block: int) -> jax.Array:
    batch, time, heads, head = query.shape
    at = jnp.arange(time)

    def take(state: State, given: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[State, None]:
        most, total, sums = state
        some_keys, some_values, to = given
        scores = jnp.einsum("bqnh,bknh->bnqk", query, some_keys, preferred_element_type=jnp.float32) * head**-0.5
        if mask == "causal":
            scores = jnp.where(causal(at, to), scores, HIDDEN)
        now = jnp.maximum(most, jax.lax.stop_gradient(scores.max(-1)))
        weights, rescaled = jnp.exp(scores - now[..., None]), jnp.exp(most - now)
        found = jnp.einsum(
            "bnqk,bknh->bnqh", weights.astype(query.dtype), some_values, preferred_element_type=jnp.float32
        )
        return (now, total * rescaled + weights.sum(-1), sums * rescaled[..., None] + found), None

    def parts(array: jax.Array) -> jax.Array:
        return jnp.moveaxis(array.reshape(batch, -1, block, heads, head), 1, 0)

    rows = (batch, heads, time)
    start = jnp.full(rows, HIDDEN, jnp.float32), jnp.zeros(rows, jnp.float32), jnp.zeros((*rows, head), jnp.float32)
    blocks = parts(key), parts(value), jnp.arange(key.shape[1]).reshape(-1, block)
    (_, total, sums), _ = jax.lax.scan(jax.checkpoint(take), start, blocks)
    return jnp.moveaxis(sums / total[..., None], 1, 2).astype(query.dtype)


def beside_formula(
    size: Extent, subject: Callable[..., jax.Array], growth: Sequence[Any], memory: Claim
) -> Computation:
    """Causal attention, forward, against the formula, which holds all scores; ``memory`` claims how much less it needs."""
    return Computation(
        subject=subject,
        reference=jax.jit(materialised("causal")),
        grow=Growth(lambda text: shapes(longer(size, text)), text=(1, 2, 4), claims=growth),
        args=make_args(size),
        next_args=onwards,
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        rtol=size.rtol,
        atol=size.atol,
        claims=[memory, claim("matmul_flops == reference", "the same products on both sides")],
    )


LINEAR = (grows("temp_bytes", "text") <= 1, grows("stablehlo_ops", "text") <= 0)
"""Memory grows with the text, not with its square, and a longer text needs no larger program."""


@CASES.workload("causal-attention-forward-over-blocks-of-keys-vs-all-at-once", sizes=SIZES)
def forward(size: Extent) -> Computation:
    return beside_formula(
        size,
        subject=jax.jit(partial(chunked, mask="causal", block=size.block)),
        growth=LINEAR,
        memory=claim("temp_bytes <= 0.5 * reference", "one block's scores at a time"),
    )


@CASES.workload("causal-attention-gradient-over-blocks-of-keys-vs-all-at-once", sizes=SIZES)
def gradient(size: Extent) -> Computation:
    query = shapes(size)[0]
    return Computation(
        subject=jax.jit(gradients(partial(chunked, mask="causal", block=size.block))),
        reference=jax.jit(gradients(materialised("causal"))),
        args=make_args(size, query),
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        analytic_flops=products_flops(size, FORWARD + BACKWARD + AGAIN),
        rtol=size.rtol,
        atol=3 * size.atol,  # each side rounds gradients of weights that nearly cancel
        claims=[
            claim("temp_bytes <= 0.6 * reference", "scores are computed again, not kept"),
            claim(f"matmul_flops <= {7 / 6} * reference", "at most one product more, beside six"),
            claim("matmul_flops == analytic_flops", "scores twice, all else once"),
        ],
    )


def windowed(query: jax.Array, key: jax.Array, value: jax.Array, *, window: int) -> jax.Array:
    """Causal attention to the last ``window`` keys: each block of queries meets its own block and the one before."""
    batch, time, heads, head = query.shape

    def parts(array: jax.Array) -> jax.Array:
        return array.reshape(batch, -1, window, heads, head)

    def with_last(array: jax.Array) -> jax.Array:
        before = jnp.pad(parts(array), ((0, 0), (1, 0), (0, 0), (0, 0), (0, 0)))[:, :-1]
        return jnp.concatenate([before, parts(array)], axis=2)

    scores = jnp.einsum("bcqnh,bcknh->bcnqk", parts(query), with_last(key), preferred_element_type=jnp.float32)
    at, to = jnp.arange(window), jnp.arange(2 * window) - window
    in_window = causal(at, to) & (to > at[:, None] - window)
    in_text = (jnp.arange(time // window) > 0)[:, None] | (to >= 0)  # the first block has none before it
    weights = weighted(scores * head**-0.5, in_window & in_text[:, None, None]).astype(value.dtype)
    return jnp.einsum("bcnqk,bcknh->bcqnh", weights, with_last(value)).reshape(query.shape)


@CASES.workload("attention-in-a-window-by-blocks-vs-by-mask", sizes=SIZES)
def sliding(size: Extent) -> Computation:
    """A window in blocks, against the same window as a mask; its alternative is the library's window."""
    args = make_args(size)
    masked = partial(jax.nn.dot_product_attention, is_causal=True, local_window_size=(size.window - 1, 0))
    return Computation(
        subject=jax.jit(partial(windowed, window=size.window)),
        reference=jax.jit(partial(by_hand, mask="causal", window=size.window)),
        alternatives=another("jax.nn", jax.jit(masked), args),
        args=args,
        next_args=onwards,
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        analytic_flops=products_flops(size, FORWARD, keys=2 * size.window),
        rtol=size.rtol,
        atol=size.atol,
        claims=[
            claim(f"matmul_flops <= {1 / 4} * reference", "two windows of keys for each query, not the whole text"),
            claim(f"matmul_flops <= {1 / 4} * alternatives", "where the window is a mask, it saves no products"),
            claim("matmul_flops == analytic_flops", "each query meets two windows of keys"),
            claim("temp_bytes <= 0.6 * reference", "nor are the scores of the whole text held"),
        ],
    )


# Attention as one Pallas kernel (after Dao et al., 2022): a block of queries stays on the chip, keys pass by.


def kernel(query_ref: Any, key_ref: Any, value_ref: Any, out_ref: Any, *, mask: Mask, block: int) -> None:
    """One block of queries [block, head] of one head, all of its keys and values [time, head], a block at a time."""
    query = query_ref[...]
    head = query.shape[-1]
    at = pl.program_id(2) * block + jax.lax.broadcasted_iota(jnp.int32, (block, block), 0)

    def take(index: jax.Array, state: Any) -> Any:
        most, total, sums = state
        some = pl.ds(index * block, block)
        scores = jnp.dot(query, key_ref[some, :].T, preferred_element_type=jnp.float32) * head**-0.5
        if mask == "causal":
            to = index * block + jax.lax.broadcasted_iota(jnp.int32, (block, block), 1)
            scores = jnp.where(to <= at, scores, HIDDEN)
        now = jnp.maximum(most, scores.max(-1))
        weights, rescaled = jnp.exp(scores - now[:, None]), jnp.exp(most - now)
        found = jnp.dot(weights.astype(query.dtype), value_ref[some, :], preferred_element_type=jnp.float32)
        return now, total * rescaled + weights.sum(-1), sums * rescaled[:, None] + found

    start = jnp.full(block, HIDDEN, jnp.float32), jnp.zeros(block, jnp.float32), jnp.zeros((block, head), jnp.float32)
    _, total, sums = jax.lax.fori_loop(0, key_ref.shape[0] // block, take, start)
    out_ref[...] = (sums / total[:, None]).astype(out_ref.dtype)


def by_kernel(query: jax.Array, key: jax.Array, value: jax.Array, *, mask: Mask, block: int) -> jax.Array:
    """Attention of a text to itself, all arrays [batch, time, heads, head].

    The kernel's arrays are [batch, heads, time, head]: what a TPU cuts into blocks must be the last two axes.
    """
    batch, time, heads, head = query.shape
    some = pl.BlockSpec((None, None, block, head), lambda text, which, place: (text, which, place, 0))
    every = pl.BlockSpec((None, None, time, head), lambda text, which, _: (text, which, 0, 0))
    attended = kernel_call(
        partial(kernel, mask=mask, block=block),
        *(jnp.swapaxes(array, 1, 2) for array in (query, key, value)),
        grid=(batch, heads, time // block),
        in_specs=[some, every, every],
        out_specs=some,
        out_shape=jax.ShapeDtypeStruct((batch, heads, time, head), query.dtype),
    )
    return jnp.swapaxes(attended, 1, 2)


@CASES.workload("causal-attention-forward-by-a-pallas-kernel-vs-by-hand", sizes=SIZES)
def build(size: Extent) -> Computation:
    return beside_formula(
        size,
        subject=jax.jit(partial(by_kernel, mask="causal", block=size.tile)),
        growth=[grows("temp_bytes", "text") <= 1],
        memory=claim("temp_bytes <= 0.6 * reference", "scores of one block of queries and one of keys"),
    )
