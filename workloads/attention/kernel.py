"""Attention as one Pallas kernel (after Dao et al., 2022): a block of queries stays on the chip, keys pass by.

It is compiled by Triton on NVIDIA GPUs and by Mosaic on TPUs; on CPU it is interpreted, which shows what it computes
and how many products it takes, and nothing about its speed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from jaxgate import Amount, Batch, Computation, Family, Growth, claim, grows
from workloads.attention.heads import HIDDEN, SIZES, Mask, longer, make_args, materialised, onwards, shapes
from workloads.parts import Extent

CASES = Family("attention")


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
    call = partial(
        pl.pallas_call,
        partial(kernel, mask=mask, block=block),
        grid=(batch, heads, time // block),
        in_specs=[some, every, every],
        out_specs=some,
        out_shape=jax.ShapeDtypeStruct((batch, heads, time, head), query.dtype),
    )
    attended = jax.lax.platform_dependent(
        *(jnp.swapaxes(array, 1, 2) for array in (query, key, value)),
        cpu=call(interpret=True),
        tpu=call(),
        default=call(compiler_params=triton.CompilerParams()),
    )
    return jnp.swapaxes(attended, 1, 2)


@CASES.workload("causal-attention-forward-by-a-pallas-kernel-vs-by-hand", sizes=SIZES)
def build(size: Extent) -> Computation:
    """The kernel against the plain formula."""
    return Computation(
        subject=jax.jit(partial(by_kernel, mask="causal", block=size.tile)),
        reference=jax.jit(materialised("causal")),
        grow=Growth(lambda text: shapes(longer(size, text)), text=(1, 2, 4), claims=[grows("temp_bytes", "text") <= 1]),
        args=make_args(size),
        next_args=onwards,
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        rtol=size.rtol,
        atol=size.atol,
        claims=[
            claim("temp_bytes <= 0.6 * reference", "scores of one block of queries and one of keys"),
            claim("matmul_flops == reference", "the same products on both sides"),
        ],
    )
