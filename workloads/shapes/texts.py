"""Texts of different lengths: the network that reads them, its training step, and texts padded on the host."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import (
    Draw,
    Extent,
    Tree,
    block_params,
    descend,
    drawing,
    fused_on_gpu,
    over_samples,
    sizes,
    squared_error,
)

CASES = Family("shapes")

OUTPUTS = 8
SPREAD = (0.6, 0.25, 1.0, 0.4)
"""Lengths of texts as shares of the longest among them, again and again."""

SIZES = sizes(
    texts=(6, 16),  # in one batch
    longest=(64, 2048),  # tokens of the longest text of all
    width=(32, 1024),  # features of a token; the perceptron has four times as many
    vocabulary=(128, 32768),  # tokens that there are, an even number
    rtol=(1e-4, 1e-2),
)
"""How many texts there are, and what is made of them."""


def flops(size: Extent, texts: int, length: int) -> int:
    """Of reading so many texts, all of them filled up to one length: projections, attention, perceptron, mean, output."""
    tokens = texts * length
    layer = 4 * 2 * tokens * size.width**2 + 2 * 2 * tokens * length * size.width + 2 * 8 * tokens * size.width**2
    return layer + 2 * tokens * size.width + 2 * texts * size.width * OUTPUTS


def lengths_of(size: Extent, turn: int) -> np.ndarray[Any, Any]:
    """Lengths [texts] of the batch of a turn: each time the same ones in another order."""
    shares = np.resize(np.roll(SPREAD, turn), size.texts)
    return np.asarray(shares * size.longest, np.int32)


def encoder_params(draw: Draw, size: Extent) -> Tree:
    """Draw the network: embedding [vocabulary, width], one layer, output [width, OUTPUTS]; NumPy arrays."""
    scale = np.float32(size.width**-0.5)
    layer = block_params(draw, size.width, 4 * size.width)
    return {"embedding": draw((size.vocabulary, size.width)), **layer, "output": scale * draw((size.width, OUTPUTS))}


def encode(params: Tree, tokens: jax.Array, lengths: jax.Array) -> jax.Array:
    """Read texts: tokens [texts, length], of which ``lengths`` [texts] are real (0 of a row without a text), to [texts, outputs]."""
    real = jnp.arange(tokens.shape[1]) < lengths[:, None]
    x = params["embedding"][tokens]
    x = x + attend(params, x, real)
    x = x + jnp.tanh(x @ params["up"]) @ params["down"]
    shares = real / jnp.maximum(lengths, 1)[:, None]
    return jnp.einsum("blw,bl->bw", x, shares) @ params["output"]


def attend(params: Tree, x: jax.Array, real: jax.Array) -> jax.Array:
    """Attention of every token to the real ones: x [texts, length, width], real [texts, length] to x's shape."""
    query, key, value = (x @ params[name] for name in ("query", "key", "value"))
    scores = jnp.einsum("bqd,bkd->bqk", query, key) * x.shape[-1] ** -0.5
    weights = jax.nn.softmax(jnp.where(real[:, None, :], scores, -1e9), axis=-1)
    return jnp.einsum("bqk,bkd->bqd", weights, value) @ params["out"]


def draw_tokens(size: Extent, seed: int, count: int) -> np.ndarray[Any, Any]:
    """Draw token numbers [count]."""
    return np.random.default_rng(seed).integers(0, size.vocabulary, count, dtype=np.int32)


def make_params(size: Extent) -> Tree:
    return jax.device_put(encoder_params(drawing(), size))


def cycle(following: list[tuple[Any, ...]], lengths: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Batches in turn, again and again, told apart by their lengths: a stream that remembers nothing."""
    keys = [tuple(np.asarray(batch[lengths]).tolist()) for batch in following]
    after = dict(zip(keys, following[1:] + following[:1], strict=True))
    return lambda args: after[tuple(np.asarray(args[lengths]).tolist())]


# A training step over texts of different lengths: filled up to the nearer of two lengths, or all to the longest.

LEARNING_RATE = 0.01
LONGEST = (3 / 8, 5 / 8, 1)
"""The longest text of each batch, as a share of the longest of all."""
BUCKETS = (1 / 2, 1)
"""Lengths to which texts are filled up, as shares of the longest of all."""


def train_step(encoder: Callable[..., Any]) -> Callable[..., tuple[Tree, jax.Array]]:
    def step(params: Tree, tokens: jax.Array, lengths: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(lambda p: squared_error(encoder(p, tokens, lengths), y))(params)
        return descend(params, grads, LEARNING_RATE), loss

    return step


def filled_up(longest: int) -> Callable[..., Any]:
    def encoder(params: Tree, tokens: jax.Array, lengths: jax.Array) -> jax.Array:
        return encode(params, jnp.pad(tokens, ((0, 0), (0, longest - tokens.shape[1]))), lengths)

    return encoder


def bucket_of(length: int, buckets: tuple[int, ...]) -> int:
    return min(bucket for bucket in buckets if bucket >= length)


def batches(size: Extent, buckets: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Tokens [texts, bucket], lengths [texts] and targets [texts, OUTPUTS] of each turn."""
    draw = drawing(1)
    found = []
    for turn, share in enumerate(LONGEST):
        lengths = (lengths_of(size, turn) * share).astype(np.int32)
        bucket = bucket_of(int(lengths.max()), buckets)
        tokens = draw_tokens(size, turn, size.texts * bucket).reshape(size.texts, bucket)
        real = np.arange(bucket) < lengths[:, None]
        found.append(jax.device_put((np.where(real, tokens, 0), lengths, draw((size.texts, OUTPUTS)))))
    return found


@CASES.workload("ragged-batches-padded-to-2-shapes-vs-one", sizes=SIZES)
def few_shapes(size: Extent) -> Computation:
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


# Texts that follow one another without gaps, as a tokenizer gives them: padded on the host before they are sent.

Scores = np.ndarray[Any, Any]
TURNS = (1, 3 / 4, 7 / 8)
"""How long the texts of each call are, as shares of those of the first: how many fall into a bucket changes, too."""


def split(tokens: np.ndarray[Any, Any], lengths: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    """Texts of their own lengths out of tokens [all of them]."""
    return np.split(tokens, np.cumsum(lengths)[:-1])


def fill(texts: Sequence[np.ndarray[Any, Any]], rows: int, length: int) -> tuple[Scores, Scores]:
    """Tokens [rows, length] and the length of each row; rows and ends that no text fills are 0."""
    tokens = np.zeros((rows, length), np.int32)
    lengths = np.zeros(rows, np.int32)
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = text
        lengths[row] = len(text)
    return tokens, lengths


def in_buckets(score: Callable[..., jax.Array], rows_of: dict[int, int]) -> Callable[..., Scores]:
    """Score texts in a call for each bucket that is needed; ``rows_of`` are the rows of a call of each length, the longest last."""

    def scores(params: Tree, tokens: np.ndarray[Any, Any], lengths: Sequence[int]) -> Scores:
        texts = split(tokens, lengths)
        parts, order, shorter = [], [], 0
        for length, rows in rows_of.items():
            own = [i for i, text in enumerate(texts) if shorter < len(text) <= length]
            shorter = length
            for chunk in (own[at : at + rows] for at in range(0, len(own), rows)):
                parts.append((score(params, *fill([texts[i] for i in chunk], rows, length)), len(chunk)))
                order += chunk
        # Read back after the last launch: no call waits for the one before.
        found = np.concatenate([part[:count] for part, count in ((jax.device_get(p), n) for p, n in parts)])
        return found[np.argsort(order)]

    return scores


def one_by_one(score: Callable[..., jax.Array]) -> Callable[..., Scores]:
    """Score each text in a call of its own, in its own shape."""

    def scores(params: Tree, tokens: np.ndarray[Any, Any], lengths: Sequence[int]) -> Scores:
        parts = [score(params, text[None], np.array([len(text)], np.int32)) for text in split(tokens, lengths)]
        return np.concatenate(jax.device_get(parts))

    return scores


@CASES.workload(
    "ragged-texts-padded-by-the-host-to-{shapes}-shapes-vs-one-by-one",
    sweep=({"shapes": 1}, {"shapes": 2}),
    sizes=SIZES,
)
def texts(size: Extent, shapes: int) -> Computation:
    score = jax.jit(encode)
    rows_of = {size.longest * n // shapes: size.texts // shapes for n in range(1, shapes + 1)}
    turns = []
    for turn, share in enumerate(TURNS):
        lengths = tuple((lengths_of(size, turn) * share).astype(int).tolist())
        turns.append((draw_tokens(size, turn, sum(lengths)), lengths))
    after = cycle(turns, lengths=1)
    tokens, lengths = turns[0]
    return Computation(
        subject=in_buckets(score, rows_of),
        reference=one_by_one(score),
        args=(make_params(size), tokens, lengths),
        next_args=lambda _, args: (args[0], *after(args[1:])),
        batch=Batch(argument=1, size=len(tokens), unit="tokens"),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("compiles == 1", "new lengths in every call, and no new program"),
            claim(f"launches == {shapes}", "one program for each shape, not for each text"),
            claim(f"launches <= {shapes / 6} * reference", "six texts or more in a batch"),
            claim(f"host_transfers <= {shapes / 6} * reference", "and as many arrays less to send and to read"),
        ],
    )
