"""Serving: texts of any length in a few shapes, a cache with slots, and one program for each token.

A server reads a text once (prefill, in the smallest bucket that holds it), writes its keys and values into a slot of a
cache that is there for all texts, and then asks for one token of every slot at a time (decode). The obvious way reads
the whole text again for each token, in a new shape each time. Mistakes it catches: buckets by the exact length and a cache
that grows (`compiles`), a cache that is copied for each token (`aliased_bytes`), the text that is read again (`matmul_flops`),
tokens fetched one by one (`host_transfers`). Sources: Pope et al., "Efficiently scaling transformer inference" (2022).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Computation, Family, Growth, claim, grows
from workloads.parts import Extent, Tree, drawing, sizes

CASES = Family("serving")

BUCKETS = (1 / 2, 1)
"""Lengths that texts are filled up to, as shares of the longest."""
TOKENS = 4
"""That are asked for after each text."""

SIZES = sizes(slots=(4, 64), longest=(32, 2048), width=(32, 1024), vocabulary=(64, 32_000))
"""Slots of a cache for texts of up to ``longest`` tokens, and an attention of ``width`` over them."""

exactly = partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)


def make_params(size: Extent) -> Tree:
    """Draw an embedding, which is also what tokens are chosen by, and one attention."""
    draw = drawing()
    square = {name: np.float32(size.width**-0.5) * draw((size.width, size.width)) for name in ("query", "key", "value")}
    return jax.device_put({"embedding": draw((size.vocabulary, size.width)), **square})


def attend(params: Tree, cache: Tree, x: jax.Array, length: jax.Array) -> jax.Array:
    """The next token of each text: cached keys and values [slots, longest, width], x [slots, width], length [slots]."""
    scores = exactly("sw,slw->sl", exactly("sw,wv->sv", x, params["query"]), cache["key"])
    seen = jnp.arange(cache["key"].shape[1]) < length[:, None]
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9))
    found = x + exactly("sl,slw->sw", weights, cache["value"])
    return exactly("sw,vw->sv", found, params["embedding"]).argmax(-1).astype(jnp.int32)


def prefill(params: Tree, cache: Tree, text: jax.Array, slot: jax.Array) -> Tree:
    """Write the keys and values of a text [length], filled up, into a slot."""
    x = params["embedding"][text]
    new = {name: exactly("lw,wv->lv", x, params[name]) for name in ("key", "value")}
    return {name: jax.lax.dynamic_update_slice(cache[name], new[name][None], (slot, 0, 0)) for name in new}


def decode(params: Tree, cache: Tree, token: jax.Array, length: jax.Array) -> tuple[Tree, jax.Array, jax.Array]:
    """Write a token of each slot behind its text, and choose the next: token and length [slots]."""
    x = params["embedding"][token]
    slots = jnp.arange(len(token))
    cache = {
        name: cache[name].at[slots, length].set(exactly("sw,wv->sv", x, params[name]), unique_indices=True)
        for name in ("key", "value")
    }
    return cache, attend(params, cache, x, length + 1), length + 1


def bucket_of(length: int, longest: int) -> int:
    """The smallest bucket that holds a text."""
    return min(int(share * longest) for share in BUCKETS if share * longest >= length)


def serve(size: Extent) -> Callable[..., np.ndarray[Any, Any]]:
    """Read texts into the slots of a cache, then ask for ``TOKENS`` of each; one array is fetched at the end."""
    fill, step = jax.jit(prefill, donate_argnums=1), jax.jit(decode, donate_argnums=1)
    empty = jax.jit(lambda: {name: jnp.zeros((size.slots, size.longest, size.width)) for name in ("key", "value")})

    def served(params: Tree, tokens: np.ndarray[Any, Any], lengths: tuple[int, ...]) -> np.ndarray[Any, Any]:
        cache = empty()
        for slot, length in enumerate(lengths):
            text = np.zeros(bucket_of(length, size.longest), np.int32)
            text[:length] = tokens[slot, :length]
            cache = fill(params, cache, text, np.int32(slot))
        ends = np.array(lengths, np.int32) - 1
        token, length = jax.device_put((tokens[np.arange(size.slots), ends], ends))
        said = []
        for _ in range(TOKENS):
            cache, token, length = step(params, cache, token, length)
            said.append(token)
        return np.stack(jax.device_get(said), 1)

    return served


def read_again() -> Callable[..., np.ndarray[Any, Any]]:
    """Read each text, and what was said so far, again for each token, in its own shape."""

    def next_token(params: Tree, text: jax.Array) -> jax.Array:
        x = params["embedding"][text]
        cache = {name: exactly("lw,wv->lv", x, params[name])[None] for name in ("key", "value")}
        return attend(params, cache, x[None, -1], jnp.array([len(text)]))[0]

    ask = jax.jit(next_token)

    def served(params: Tree, tokens: np.ndarray[Any, Any], lengths: tuple[int, ...]) -> np.ndarray[Any, Any]:
        said = []
        for row, length in zip(tokens, lengths, strict=True):
            text = row[:length]
            for _ in range(TOKENS):
                text = np.append(text, np.int32(ask(params, text)))
            said.append(text[length:])
        return np.stack(said)

    return served


@CASES.workload("texts-in-two-buckets-and-a-cache-with-slots-vs-read-again-for-each-token", sizes=SIZES)
def served(size: Extent) -> Computation:
    """Some texts are read and answered; the next call has texts of other lengths."""
    drawn = np.random.default_rng(1).integers(size.vocabulary, size=(size.slots, size.longest), dtype=np.int32)
    turns = [
        tuple((size.longest // 4 + 3 * slot + turn) % (size.longest - TOKENS) + 1 for slot in range(size.slots))
        for turn in range(3)
    ]
    return Computation(
        subject=serve(size),
        reference=read_again(),
        args=(make_params(size), drawn, turns[0]),
        next_args=lambda _, args: (*args[:2], turns[(turns.index(args[2]) + 1) % len(turns)]),
        amount=Amount(count=TOKENS * size.slots, unit="tokens"),
        eager=True,
        claims=[
            claim("compiles <= 1", "texts of other lengths, and no new program"),
            claim(f"launches == {1 + size.slots + TOKENS}", "a cache, each text once, and one program for each token"),
            claim("launches <= 0.6 * reference", "not one for each token of each text"),
        ],
    )


@CASES.workload("a-token-of-each-slot-with-a-donated-cache-vs-copied", sizes=SIZES)
def one_token(size: Extent) -> Computation:
    draw = drawing(1)
    cache = {name: draw((size.slots, size.longest, size.width)) for name in ("key", "value")}
    state = (cache, np.zeros(size.slots, np.int32), np.full(size.slots, size.longest // 2, np.int32))
    args = (make_params(size), *jax.device_put(state))

    def longer(longest: int) -> tuple[Any, ...]:
        shape = jax.ShapeDtypeStruct((size.slots, longest, size.width), jnp.float32)
        return (args[0], {"key": shape, "value": shape}, *args[2:])

    return Computation(
        subject=jax.jit(decode, donate_argnums=1),
        reference=jax.jit(decode),
        args=args,
        next_args=lambda result, args: (args[0], result[0], result[1], args[3]),
        grow=Growth(
            longer,
            longest=[size.longest // 2, size.longest, 2 * size.longest],
            claims=[grows("temp_bytes", "longest") <= 1],
        ),
        amount=Amount(count=size.slots, unit="tokens"),
        claims=[
            claim("aliased_bytes >= donated_bytes", "the cache is written in its own memory"),
            claim("matmul_flops == reference", "one token each, against what is cached"),
        ],
    )
