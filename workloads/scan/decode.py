"""Autoregressive decoding with a cache of keys and values: one token after the other, in one program.

The cache has a fixed length, each token writes its own slot (``dynamic_update_slice``), and the call gives it back in
the memory that it came in. A cache that grows retraces with every token; one that is not there multiplies everything
again for the whole text. Positions go round in the cache: past its end the oldest token is forgotten.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, normalise, sizes
from workloads.scan.rnn import Turns, as_large, by_loop, by_scan

CASES = Family("scan")

TOKENS = 16
SHARPNESS = 4.0  # scale of the logits: the best token is far enough ahead that rounding chooses no other

exactly = partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
"""A product in full float32: a token is a decision, which rounding must not change. Decoding waits for memory anyway."""

IN_PLACE = (
    claim("donated_bytes >= 1", "the cache is donated at all"),
    claim("aliased_bytes >= donated_bytes", "it comes back in the memory that it came in"),
    claim("temp_bytes <= 0.5 * donated_bytes", "no second cache is held while it is written"),
    claim("matmul_flops == reference", "one token each time, whatever was read before"),
)
"""What a donated cache of fixed length gives."""

SIZES = sizes(
    batch=(4, 16),  # texts
    layers=(2, 4),  # transformer blocks
    heads=(2, 16),  # of each attention
    head=(16, 64),  # numbers in each head's keys and values
    vocabulary=(64, 32_000),  # tokens to choose from
    context=(128, 1024),  # tokens that the cache holds
)
"""How large the model is, and how much of the text it sees."""


def width_of(size: Extent) -> int:
    return size.heads * size.head


def cache_shape(size: Extent) -> tuple[int, ...]:
    """Of the keys of one layer, and of its values."""
    return size.batch, size.heads, size.context, size.head


def make_params(size: Extent) -> Tree:
    """Draw the model: an embedding, which is also what logits are made with, and blocks."""
    draw = drawing()
    width, hidden = width_of(size), 2 * width_of(size)
    shapes = dict.fromkeys(("query", "key", "value", "out"), (width, width))
    shapes |= {"up": (width, hidden), "down": (hidden, width)}
    blocks = [
        {name: np.float32(shape[0] ** -0.5) * draw(shape) for name, shape in shapes.items()} for _ in range(size.layers)
    ]
    return jax.device_put({"embedding": draw((size.vocabulary, width)), "blocks": blocks})


def make_cache(size: Extent) -> Tree:
    """Draw the keys and values of a text that was read before, for each layer."""
    draw = drawing(1)
    return jax.device_put([{name: draw(cache_shape(size)) for name in ("keys", "values")} for _ in range(size.layers)])


def make_tokens(size: Extent) -> jax.Array:
    drawn = np.random.default_rng(2).integers(size.vocabulary, size=size.batch, dtype=np.int32)
    return jax.device_put(drawn)


def remember(cached: jax.Array, new: jax.Array, slot: jax.Array) -> jax.Array:
    """Write one token's keys or values: cached [batch, heads, context, head], new [batch, heads, head]."""
    return jax.lax.dynamic_update_slice_in_dim(cached, new[:, :, None], slot, axis=2)


def attend(block: Tree, cache: Tree, x: jax.Array, position: jax.Array) -> tuple[Tree, jax.Array]:
    """Attention of one token to all before it: x [batch, width]; its keys and values go into the cache."""
    batch, heads, context, head = cache["keys"].shape
    query, key, value = (
        exactly("bw,wv->bv", x, block[name]).reshape(batch, heads, head) for name in ("query", "key", "value")
    )
    slot = position % context
    cache = {"keys": remember(cache["keys"], key, slot), "values": remember(cache["values"], value, slot)}
    scores = exactly("bhd,bhkd->bhk", query, cache["keys"]) * head**-0.5
    weights = jax.nn.softmax(jnp.where(jnp.arange(context) <= position, scores, -1e9), axis=-1)
    mixed = exactly("bhk,bhkd->bhd", weights, cache["values"]).reshape(batch, heads * head)
    return cache, exactly("bw,wv->bv", mixed, block["out"])


def logits_of(params: Tree, cache: Tree, token: jax.Array, position: jax.Array) -> tuple[Tree, jax.Array]:
    """Read one token of each text: token [batch]; the cache with it, and logits [batch, vocabulary] of the next one."""
    x = params["embedding"][token]
    caches = []
    for block, cached in zip(params["blocks"], cache, strict=True):
        kept, mixed = attend(block, cached, normalise(x), position)
        caches.append(kept)
        x = x + mixed
        x = x + exactly("bh,hw->bw", jax.nn.gelu(exactly("bw,wh->bh", normalise(x), block["up"])), block["down"])
    return caches, to_logits(params, x)


def to_logits(params: Tree, x: jax.Array) -> jax.Array:
    """Say how likely each token is: x [batch, width] to [batch, vocabulary]."""
    return SHARPNESS * x.shape[-1] ** -0.5 * exactly("bw,vw->bv", normalise(x), params["embedding"])


def greedily(logits: jax.Array, _: Tree) -> jax.Array:
    return jnp.argmax(logits, axis=-1)


def generate(
    params: Tree,
    cache: Tree,
    token: jax.Array,
    position: jax.Array,
    inputs: Tree,
    *,
    turns: Turns,
    pick: Callable[..., Any],
) -> tuple[tuple[Tree, jax.Array, jax.Array], jax.Array]:
    """Make one token for each input: what the next call starts from, and tokens [tokens, batch]."""

    def turn(state: Tree, given: Tree) -> tuple[Tree, jax.Array]:
        cache, token, position = state
        cache, logits = logits_of(params, cache, token, position)
        token = pick(logits, given).astype(token.dtype)
        return (cache, token, position + 1), token

    state, tokens = turns(turn, (cache, token, position), inputs)
    return state, tokens


def following(result: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The next call goes on where this one ended."""
    cache, token, position = result[0]
    return args[0], cache, token, position, *args[4:]


def make_args(size: Extent) -> tuple[Any, ...]:
    return make_params(size), make_cache(size), make_tokens(size), jnp.int32(size.context // 2)


def decoding(size: Extent, pick: Callable[..., Any], inputs: Callable[[int], Tree]) -> Computation:
    """Make ``TOKENS`` tokens in one call, the cache donated; ``inputs`` makes what that many turns are given."""
    args = make_args(size)
    return Computation(
        subject=jax.jit(partial(generate, turns=by_scan, pick=pick), donate_argnums=1),
        reference=jax.jit(partial(generate, turns=by_loop, pick=pick)),
        args=(*args, inputs(TOKENS)),
        next_args=following,
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=TOKENS * size.batch, unit="tokens"),
        grow=as_large(TOKENS, lambda steps: (*args, inputs(steps))),
        claims=[
            claim(f"stablehlo_ops <= {2 / TOKENS} * reference", "the loop holds a model for each token"),
            *IN_PLACE,
            claim("peak_bytes <= reference", "nor does the whole call"),
        ],
    )


@CASES.workload(f"greedy-decode-of-{TOKENS}-tokens-scan-vs-loop", sizes=SIZES)
def greedy(size: Extent) -> Computation:
    """The likeliest token each time; turns are given their number, which they have no use for."""
    return decoding(size, greedily, jnp.arange)


def by_chance(logits: jax.Array, given: Tree) -> jax.Array:
    """Draw a token as likely as the logits say: the higher the temperature, the more even."""
    return jax.random.categorical(given["key"], logits / given["temperature"])


def draws(temperature: float, tokens: int) -> Tree:
    """What each turn is given: a key of its own, and the temperature. Python's own would be compiled in."""
    keys = jax.random.split(jax.random.key(0), tokens)
    return {"key": keys, "temperature": jnp.full(tokens, temperature, jnp.float32)}


@CASES.workload(
    f"sampling-decode-of-{TOKENS}-tokens-at-temperature-{{temperature}}-scan-vs-loop",
    sweep=({"temperature": 0.7},),
    sizes=SIZES,
)
def sampling(size: Extent, temperature: float) -> Computation:
    return decoding(size, by_chance, partial(draws, temperature))


def one_token(params: Tree, cache: Tree, token: jax.Array, position: jax.Array) -> Any:
    """A call for each token, as a server makes it that answers after each."""
    cache, logits = logits_of(params, cache, token, position)
    token = greedily(logits, None).astype(token.dtype)
    return (cache, token, position + 1), token


@CASES.workload("decode-of-one-token-with-its-cache-donated-vs-copied", sizes=SIZES)
def single(size: Extent) -> Computation:
    return Computation(
        subject=jax.jit(one_token, donate_argnums=1),
        reference=jax.jit(one_token),
        args=make_args(size),
        next_args=following,
        batch=Batch(argument=2, size=size.batch, unit="tokens"),
        claims=(*IN_PLACE, claim("peak_bytes <= 0.8 * reference", "old and new cache share their memory")),
    )


def with_cache(params: Tree, token: jax.Array, places: jax.Array, *, size: Extent) -> jax.Array:
    """Go on from the first token of each text: tokens [places, batch]; what was read is kept."""
    cache = [{name: jnp.zeros(cache_shape(size)) for name in ("keys", "values")} for _ in params["blocks"]]
    return generate(params, cache, token, jnp.int32(0), places, turns=by_scan, pick=greedily)[1]


def without_cache(params: Tree, token: jax.Array, places: jax.Array, *, size: Extent) -> jax.Array:
    """The same, but the whole text is read again for each token."""

    def turn(text: jax.Array, place: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = params["embedding"][text]
        for block in params["blocks"]:
            x = x + attend_to_all(block, normalise(x), size)
            x = x + exactly(
                "bth,hw->btw", jax.nn.gelu(exactly("btw,wh->bth", normalise(x), block["up"])), block["down"]
            )
        found = greedily(to_logits(params, x[:, place]), None).astype(token.dtype)
        return text.at[:, place + 1].set(found, mode="drop"), found

    text = jnp.zeros((size.batch, size.context), token.dtype).at[:, 0].set(token)
    return by_scan(turn, text, places)[1]


def attend_to_all(block: Tree, x: jax.Array, size: Extent) -> jax.Array:
    """Causal attention of all tokens of a text: x [batch, time, width] to [batch, time, width]."""
    split = *x.shape[:2], size.heads, size.head
    query, key, value = (exactly("btw,wv->btv", x, block[name]).reshape(split) for name in ("query", "key", "value"))
    scores = exactly("bqhd,bkhd->bhqk", query, key) * size.head**-0.5
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    return exactly("btw,wv->btv", exactly("bhqk,bkhd->bqhd", weights, value).reshape(x.shape), block["out"])


@CASES.workload(f"decode-of-{TOKENS}-tokens-in-a-scan-with-cache-vs-reading-all-again", sizes=SIZES)
def remembering(size: Extent) -> Computation:
    """A text from its first token on, with a cache as long as the text; against reading it again and again."""
    size = size.but(context=TOKENS)
    return Computation(
        subject=jax.jit(partial(with_cache, size=size)),
        reference=jax.jit(partial(without_cache, size=size)),
        args=(make_params(size), make_tokens(size), jnp.arange(TOKENS)),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=TOKENS * size.batch, unit="tokens"),
        claims=(claim(f"matmul_flops <= {4 / TOKENS} * reference", "a token costs one token, not the whole text"),),
    )
