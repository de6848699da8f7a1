"""Texts of different lengths and the network that reads them: one layer of attention, masked where a text has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workloads.parts import Draw, Extent, Tree, block_params, drawing, sizes

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
    """Read texts.

    Args:
        params: As drawn by ``encoder_params``.
        tokens: Numbers [texts, length]; what they are beyond the end of a text does not matter.
        lengths: Tokens of each text [texts]; of a row without a text 0.

    Returns:
        Float[Array, "texts outputs"].
    """
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
    """Draw the network and put it on the device."""
    return jax.device_put(encoder_params(drawing(), size))


def cycle(following: list[tuple[Any, ...]], lengths: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Batches in turn, again and again, distinguished by their lengths: a stream that remembers nothing.

    Args:
        following: The arguments of each turn.
        lengths: Which of them holds the lengths.
    """
    keys = [tuple(np.asarray(batch[lengths]).tolist()) for batch in following]
    after = dict(zip(keys, following[1:] + following[:1], strict=True))
    return lambda args: after[tuple(np.asarray(args[lengths]).tolist())]
