"""What all ways of attention share, and the library's: sizes, data, the plain formula, ``jax.nn.dot_product_attention``.

Arrays stand as ``jax.nn.dot_product_attention`` takes them: [batch, time, heads, head].
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxgate import Amount, Batch, Claim, Computation, Family, Growth, claim
from workloads.parts import Extent, another, drawing, fused_on_gpu, sizes

CASES = Family("attention")

Attend = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
"""Attention of queries [batch, time, heads, head] to keys and values [batch, keys, key heads, head]."""

Mask = Literal["full", "causal"]

HIDDEN = -1e9
"""Score of a key that must not be seen: its weight is zero in any float type."""

FORWARD, BACKWARD = 2, 4
"""Products: scores and their values; then the gradients of weights, values, queries and keys."""

SIZES = sizes(
    batch=(2, 4),  # texts
    time=(256, 2048),  # tokens of each; queries, and keys if not said otherwise
    heads=(4, 16),  # of the queries
    head=(16, 64),  # numbers in each head
    key_heads=(1, 4),  # of keys and values where several heads of queries share them
    block=(32, 256),  # keys that are taken at once where they are not taken all together
    tile=64,  # queries, and keys, that a kernel takes at once
    window=(32, 256),  # keys that a query sees, itself among them, where it does not see all
    dtype=("float32", "bfloat16"),  # of queries, keys and values
    rtol=(1e-4, 5e-2),
    atol=(1e-5, 1e-2),
)
"""How large the attention is."""


def longer(size: Extent, times: int) -> Extent:
    return size.but(time=times * size.time)


def products_flops(size: Extent, products: int, *, queries: int | None = None, keys: int | None = None) -> int:
    """FLOPs of so many products between queries and keys, masked ones too; all of a text unless their number is given."""
    met = (queries or size.time) * (keys or size.time)
    return products * 2 * size.batch * size.heads * met * size.head


def shapes(size: Extent, *, queries: int | None = None, key_heads: int | None = None) -> tuple[Any, ...]:
    """Queries, keys and values as they are compiled for."""
    query = size.batch, queries or size.time, size.heads, size.head
    key = size.batch, size.time, key_heads or size.heads, size.head
    return tuple(jax.ShapeDtypeStruct(shape, jnp.dtype(size.dtype)) for shape in (query, key, key))


def make_args(size: Extent, *more: Any, queries: int | None = None, key_heads: int | None = None) -> Any:
    """Draw queries, keys and values; ``more`` are shapes of further arrays."""
    draw = drawing()
    wanted = (*shapes(size, queries=queries, key_heads=key_heads), *more)
    return tuple(jax.device_put(draw(one.shape).astype(one.dtype)) for one in wanted)


def weighted(scores: jax.Array, seen: jax.Array | None) -> jax.Array:
    """Softmax over the last axis, of what is seen."""
    return jax.nn.softmax(scores if seen is None else jnp.where(seen, scores, HIDDEN), axis=-1)


def causal(queries: jax.Array, keys: jax.Array) -> jax.Array:
    """Which keys each query sees, by their positions: itself and what stands before it."""
    return keys <= queries[:, None]


def by_hand(query: jax.Array, key: jax.Array, value: jax.Array, *, mask: Mask, window: int = 0) -> jax.Array:
    """The formula as it is written: softmax(QKᵀ / √head) V, with all scores in memory at once.

    Scores are summed and weighed in float32, as every library does; weights have the type of the values.
    """
    scores = jnp.einsum("bqnh,bknh->bnqk", query, key, preferred_element_type=jnp.float32) * key.shape[-1] ** -0.5
    at, to = jnp.arange(query.shape[1]), jnp.arange(key.shape[1])
    seen = causal(at, to) if mask == "causal" else None
    if window:
        seen = causal(at, to) & (to > at[:, None] - window)
    return jnp.einsum("bnqk,bknh->bqnh", weighted(scores, seen).astype(value.dtype), value)


def gradients(attend: Attend) -> Callable[..., Any]:
    """The result, and the gradients of queries, keys and values for a loss that grows in a direction of the result."""

    def both(query: jax.Array, key: jax.Array, value: jax.Array, direction: jax.Array) -> tuple[jax.Array, ...]:
        result, pull = jax.vjp(attend, query, key, value)
        return result, *pull(direction)

    return both


def onwards(result: jax.Array, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return result, *args[1:]


def materialised(mask: Mask) -> Attend:
    return partial(by_hand, mask=mask)


# ``jax.nn.dot_product_attention`` against attention written by hand.

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
    scores = claim("temp_bytes <= 2.2 * reference", "the fused kernel keeps none; without it twice at most")
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
        alternatives=another("keys for each head", subject, shapes(size, queries=1)),
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
