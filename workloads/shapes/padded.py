"""A training step over texts of different lengths: filled up to the nearer of two lengths, or all to the longest.

One shape is one program, and pays for tokens that are not there; a shape for each length is a program for each. Batches
come in turn: the first holds short texts, the second longer ones, the third the longest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, fused_on_gpu, over_samples, squared_error
from workloads.shapes.encoder import OUTPUTS, SIZES, cycle, draw_tokens, encode, flops, lengths_of, make_params

CASES = Family("shapes")

LEARNING_RATE = 0.01
TURNS = (3 / 8, 5 / 8, 1)
"""The longest text of each batch, as a share of the longest of all."""
BUCKETS = (1 / 2, 1)
"""Lengths to which texts are filled up, as shares of the longest of all."""

Encoder = Callable[[Tree, jax.Array, jax.Array], jax.Array]


def train_step(encoder: Encoder) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step of gradient descent, parameters in and out."""

    def step(params: Tree, tokens: jax.Array, lengths: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(lambda p: squared_error(encoder(p, tokens, lengths), y))(params)
        return descend(params, grads, LEARNING_RATE), loss

    return step


def filled_up(longest: int) -> Encoder:
    """Fill all texts up to one length."""

    def encoder(params: Tree, tokens: jax.Array, lengths: jax.Array) -> jax.Array:
        return encode(params, jnp.pad(tokens, ((0, 0), (0, longest - tokens.shape[1]))), lengths)

    return encoder


def bucket_of(length: int, buckets: tuple[int, ...]) -> int:
    """The least bucket that holds a text."""
    return min(bucket for bucket in buckets if bucket >= length)


def batches(size: Extent, buckets: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Tokens [texts, bucket], lengths [texts] and targets [texts, OUTPUTS] of each turn."""
    draw = drawing(1)
    found = []
    for turn, share in enumerate(TURNS):
        lengths = (lengths_of(size, turn) * share).astype(np.int32)
        bucket = bucket_of(int(lengths.max()), buckets)
        tokens = draw_tokens(size, turn, size.texts * bucket).reshape(size.texts, bucket)
        real = np.arange(bucket) < lengths[:, None]
        found.append(jax.device_put((np.where(real, tokens, 0), lengths, draw((size.texts, OUTPUTS)))))
    return found


@CASES.workload("ragged-batches-padded-to-2-shapes-vs-one", sizes=SIZES)
def few_shapes(size: Extent) -> Computation:
    """Batches filled up to the least of two lengths, against the longest of all."""
    turns = batches(size, tuple(int(share * size.longest) for share in BUCKETS))
    tokens, lengths, _ = turns[0]
    after, args = cycle(turns, lengths=1), (make_params(size), *turns[0])
    shorter = BUCKETS[0]
    return Computation(
        subject=jax.jit(train_step(encode), donate_argnums=0),
        reference=jax.jit(train_step(filled_up(size.longest))),
        args=args,
        grow=over_samples(args, 1, 2, 3),
        next_args=lambda result, args: (result[0], *after(args[1:])),
        expected_traces=len({tokens.shape for tokens, _, _ in turns}),
        batch=Batch(argument=1, size=size.texts),
        amount=Amount(count=sum(lengths.tolist()), unit="tokens"),
        analytic_flops=3 * flops(size, size.texts, tokens.shape[1])
        - 2 * tokens.size * size.width,  # shares: no gradient
        rtol=size.rtol,
        atol=size.rtol,
        claims=[
            claim("compiles == 2", "one program for each length that batches are filled up to, no more"),
            claim("matmul_flops == analytic_flops", "every text is multiplied as if it were as long as its bucket"),
            claim(f"matmul_flops <= {shorter} * reference", "fewer tokens that are not there"),
            claim(
                f"temp_bytes <= {1.1 * shorter} * reference",
                "and less is kept for the way back",
                known_break=fused_on_gpu(">=0.12"),
            ),
        ],
    )
