"""``jax.nn.dot_product_attention`` against attention written by hand.

On NVIDIA GPUs of compute capability 8 and later the library's is cuDNN's fused kernel, which keeps no scores (Dao et
al., 2022); JAX takes it only where it is asked for, and only for 16-bit floats. Elsewhere it is the same formula. Both
sides count the same products: the mask saves none by convention, and the kernel's second pass over the scores in the
backward pass is counted as a product of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxgate import Alternative, Amount, Batch, Claim, Computation, Family, Growth, claim
from workloads.attention.heads import (
    SIZES,
    Attend,
    Mask,
    by_hand,
    gradients,
    longer,
    make_args,
    materialised,
    onwards,
    shapes,
)
from workloads.parts import Extent, fused_on_gpu

CASES = Family("attention")

Direction = Literal["forward", "gradient"]

TEXTS, LONGER = 16, 4  # times the texts, and their tokens, that are decoded at once: one token each is little work

_FUSED_SINCE = 8.0  # compute capability from which cuDNN has the fused kernel


def fused(dtype: str) -> bool:
    """Whether this hardware has the fused kernel for a type."""
    device = jax.local_devices()[0]
    if device.platform != "gpu" or dtype not in {"bfloat16", "float16"}:
        return False
    return float(getattr(device, "compute_capability", 0)) >= _FUSED_SINCE


def by_library(size: Extent, mask: Mask) -> Attend:
    """The library's attention, in the implementation that is made for this hardware."""
    chosen = "cudnn" if fused(size.dtype) else "xla"
    return partial(jax.nn.dot_product_attention, is_causal=mask == "causal", implementation=chosen)


SWEEP: tuple[dict[str, Any], ...] = tuple(
    {"mask": mask, "direction": direction}
    for mask, direction in (("full", "forward"), ("causal", "forward"), ("causal", "gradient"))
)


@CASES.workload("{mask}-attention-{direction}-by-jax.nn-vs-by-hand", sweep=SWEEP, sizes=SIZES)
def whole(size: Extent, mask: Mask, direction: Direction) -> Computation:
    """Attention of a text to itself, or its gradients."""
    query = shapes(size)[0]
    ways = by_library(size, mask), materialised(mask)
    forward = direction == "forward"
    subject, reference = (jax.jit(way if forward else gradients(way)) for way in ways)

    def at(text: int) -> tuple[Any, ...]:
        args = shapes(longer(size, text))
        return args if forward else (*args, args[0])

    return Computation(
        subject=subject,
        reference=reference,
        args=make_args(size, *([] if forward else [query])),
        grow=Growth(at, text=(1, 2, 4)),
        next_args=onwards if forward else None,
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        rtol=size.rtol,
        atol=size.atol,
        claims=whole_claims(mask, direction),
    )


def whole_claims(mask: Mask, direction: Direction) -> tuple[Claim, ...]:
    """What the library must give, on any hardware."""
    whole_formula = mask == "full" and direction == "forward"  # which a compiler may fuse as it stands
    scores = claim(
        "temp_bytes <= 2.2 * reference", "the fused kernel keeps no scores; without it they are there twice at most"
    )
    same = claim("matmul_flops == reference", "the same products on both sides")
    once_more = claim(f"matmul_flops <= {7 / 6} * reference", "at most the scores once more, in place of keeping them")
    return (
        same if direction == "forward" else once_more,
        *(() if whole_formula else (scores,)),
        claim("widened_bytes <= reference", "only scores are summed in float32"),
        claim("constant_bytes <= 1024", "a mask is computed, not captured"),
    )


def repeated(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """By hand, with a copy of keys and values for every head of the queries."""
    times = query.shape[2] // key.shape[2]
    return by_hand(query, jnp.repeat(key, times, axis=2), jnp.repeat(value, times, axis=2), mask="full")


@CASES.workload("attention-of-one-token-with-keys-shared-by-heads-vs-repeated", sizes=SIZES)
def shared(size: Extent) -> Computation:
    """One new token, and heads of queries that share keys and values in the cache (Ainslie et al., 2023)."""
    size = longer(size, LONGER).but(batch=TEXTS * size.batch)
    subject = jax.jit(by_library(size, "full"))
    return Computation(
        subject=subject,
        reference=jax.jit(repeated),
        alternatives={"keys for each head": Alternative(function=subject, args=shapes(size, queries=1))},
        args=make_args(size, queries=1, key_heads=size.key_heads),
        next_args=onwards,
        batch=Batch(argument=0, size=size.batch, unit="tokens"),
        rtol=size.rtol,
        atol=size.atol,
        claims=[
            claim("matmul_flops == reference", "every head of the queries meets every key"),
            claim("argument_bytes <= 0.3 * alternatives", "a quarter of the keys and values, and all queries"),
            claim("temp_bytes <= 0.7 * reference", "no copy of the keys for each head", known_break=fused_on_gpu()),
        ],
    )
