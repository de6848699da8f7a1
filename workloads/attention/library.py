"""``jax.nn.dot_product_attention`` against attention written by hand.

On NVIDIA GPUs of compute capability 8 and later the library's is cuDNN's fused kernel, which keeps no scores (Dao et
al., 2022); JAX takes it only where it is asked for, and only for 16-bit floats. Elsewhere it is the same formula. Both
sides count the same products: the mask saves none by convention, and the kernel's second pass over the scores in the
backward pass is counted as a product of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxgate.model import Alternative, Amount, Batch, Case, Claim, Computation, at_most, cases, equal
from workloads.attention.heads import (
    BACKWARD,
    FORWARD,
    SIZES,
    Attend,
    Extent,
    Mask,
    by_hand,
    gradients,
    make_args,
    materialised,
    onwards,
    shapes,
)

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


def whole(size: Extent, mask: Mask, direction: Direction) -> Computation:
    """Attention of a text to itself, or its gradients."""
    query = shapes(size)[0]
    ways = by_library(size, mask), materialised(mask)
    forward = direction == "forward"
    again = 1 if fused(size.dtype) else 0  # the kernel makes the scores anew in its backward pass
    subject, reference = (jax.jit(way if forward else gradients(way)) for way in ways)
    return Computation(
        subject=subject,
        reference=reference,
        args=make_args(size, *([] if forward else [query])),
        next_args=onwards if forward else None,
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        analytic_flops=size.products_flops(FORWARD if forward else FORWARD + BACKWARD + again),
        rtol=size.rtol,
        atol=size.atol,
    )


def whole_claims(mask: Mask, direction: Direction) -> tuple[Claim, ...]:
    """What the library must give, on any hardware."""
    whole_formula = mask == "full" and direction == "forward"  # which a compiler may fuse as it stands
    scores = at_most(2.2, "temp_bytes", why="the fused kernel keeps no scores; without it they are there twice at most")
    same = equal("matmul_flops", to="reference", why="the same products on both sides")
    once_more = at_most(7 / 6, "matmul_flops", why="at most the scores once more, in place of keeping them")
    return (
        equal("matmul_flops", to="analytic_flops", why="scores and values, and their gradients: each once"),
        same if direction == "forward" else once_more,
        *(() if whole_formula else (scores,)),
        at_most(1.0, "widened_bytes", why="only scores are summed in float32"),
        at_most(1024, "constant_bytes", of="one", why="a mask is computed, not captured"),
    )


def repeated(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """By hand, with a copy of keys and values for every head of the queries."""
    times = query.shape[2] // key.shape[2]
    return by_hand(query, jnp.repeat(key, times, axis=2), jnp.repeat(value, times, axis=2), mask="full")


def shared(size: Extent) -> Computation:
    """One new token, and heads of queries that share keys and values in the cache (Ainslie et al., 2023)."""
    size = replace(size.longer(LONGER), batch=TEXTS * size.batch)
    subject = jax.jit(by_library(size, "full"))
    return Computation(
        subject=subject,
        reference=jax.jit(repeated),
        alternatives={"keys for each head": Alternative(function=subject, args=shapes(size, queries=1))},
        args=make_args(size, queries=1, key_heads=size.key_heads),
        next_args=onwards,
        batch=Batch(argument=0, size=size.batch),
        amount=Amount(count=size.batch, unit="tokens"),
        analytic_flops=size.products_flops(FORWARD, queries=1),
        rtol=size.rtol,
        atol=size.atol,
    )


def shared_claims(**_: Any) -> tuple[Claim, ...]:
    """What sharing must give: less to keep and to read, and no copies of it."""
    return (
        equal("matmul_flops", to="analytic_flops", why="every head of the queries meets every key"),
        at_most(0.3, "argument_bytes", of="alternatives", why="a quarter of the keys and values, and all queries"),
        at_most(0.7, "temp_bytes", why="no copy of the keys for each head"),
    )


SWEEP: tuple[dict[str, Any], ...] = tuple(
    {"mask": mask, "direction": direction} for direction in ("forward", "gradient") for mask in ("full", "causal")
)

CASES: tuple[Case, ...] = (
    *cases("attention", "{mask}-attention-{direction}-by-jax.nn-vs-by-hand", whole, SWEEP, whole_claims, sizes=SIZES),
    *cases(
        "attention",
        "attention-of-one-token-with-keys-shared-by-heads-vs-repeated",
        shared,
        ({},),
        shared_claims,
        sizes=SIZES,
    ),
)
