"""Decoding by chance and by search: the turn of ``decode`` with random keys, and with several beams.

Keys are split outside of the loop and come in as data, as the temperature does. Python's own randomness would be
drawn once, while tracing, and every call would repeat it; a temperature of Python's would be compiled in.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import drawing
from workloads.scan.decode import (
    SIZES,
    TOKENS,
    Extent,
    decoding,
    logits_of,
    make_cache,
    make_params,
    make_tokens,
    products,
)
from workloads.scan.turns import Tree, Turns, as_large, by_loop, by_scan

CASES = Family("scan")

BEAM_TOKENS = 8


def by_chance(logits: jax.Array, given: Tree) -> jax.Array:
    """Draw a token as likely as the logits say: the higher the temperature, the more even."""
    return jax.random.categorical(given["key"], logits / given["temperature"])


def draws(temperature: float, tokens: int) -> Tree:
    """What each turn is given: a key of its own, and the temperature."""
    keys = jax.random.split(jax.random.key(0), tokens)
    return {"key": keys, "temperature": jnp.full(tokens, temperature, jnp.float32)}


@CASES.workload(
    f"sampling-decode-of-{TOKENS}-tokens-at-temperature-{{temperature}}-scan-vs-loop",
    sweep=({"temperature": 0.7},),
    sizes=SIZES,
)
def sampling(size: Extent, temperature: float) -> Computation:
    """Tokens drawn one after the other."""
    return decoding(size, by_chance, partial(draws, temperature))


def search(
    params: Tree, cache: Tree, beams: Tree, position: jax.Array, places: jax.Array, *, turns: Turns
) -> tuple[tuple[Tree, Tree, jax.Array], jax.Array]:
    """Keep the likeliest texts of each batch entry, and read them back from their last token.

    Args:
        params: The model.
        cache: Keys and values [batch * beams, ...] of each layer.
        beams: Last ``token`` of each, and its ``score``, the text's log-probability; [batch, beams].
        position: Where the next token goes.
        places: One number for each token to make.
        turns: How turns are taken.

    Returns:
        What the next call starts from, and texts [places, batch, beams], the likeliest first.
    """
    batch, width = beams["token"].shape

    def turn(state: Tree, _: jax.Array) -> tuple[Tree, Tree]:
        cache, beams, position = state
        cache, logits = logits_of(params, cache, beams["token"].reshape(-1), position)
        scores = beams["score"][..., None] + jax.nn.log_softmax(logits).reshape(batch, width, -1)
        score, chosen = jax.lax.top_k(scores.reshape(batch, -1), width)
        parent, token = jnp.divmod(chosen, logits.shape[-1])
        rows = (jnp.arange(batch)[:, None] * width + parent).reshape(-1)
        cache = jax.tree.map(lambda leaf: leaf[rows], cache)
        return (cache, {"token": token, "score": score}, position + 1), {"token": token, "parent": parent}

    def back(beam: jax.Array, made: Tree) -> tuple[jax.Array, jax.Array]:
        here = jax.tree.map(lambda leaf: jnp.take_along_axis(leaf, beam, axis=1), made)
        return here["parent"], here["token"]

    state, made = turns(turn, (cache, beams, position), places)
    last = jnp.broadcast_to(jnp.arange(width), (batch, width))
    _, texts = turns(back, last, jax.tree.map(lambda leaf: leaf[::-1], made))
    return state, texts[::-1]


@CASES.workload(
    f"beam-decode-of-{BEAM_TOKENS}-tokens-with-{{beams}}-beams-scan-vs-loop", sweep=({"beams": 4},), sizes=SIZES
)
def searching(size: Extent, beams: int) -> Computation:
    """Several beams for each text; each turn puts the cache into the order of those that are kept."""
    wide = replace(size, batch=size.batch * beams, context=size.context // beams)
    scores = jax.device_put(-np.sort(drawing(3)((size.batch, beams)) ** 2))
    first = {"token": make_tokens(size, beams), "score": scores}
    args = make_params(size), make_cache(wide), first, jnp.int32(wide.context // 2)
    return Computation(
        subject=jax.jit(partial(search, turns=by_scan), donate_argnums=1),
        reference=jax.jit(partial(search, turns=by_loop)),
        args=(*args, jnp.arange(BEAM_TOKENS)),
        next_args=lambda result, args: (args[0], *result[0], args[4]),
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=BEAM_TOKENS * size.batch, unit="tokens"),
        analytic_flops=BEAM_TOKENS * products(wide),
        grow=as_large(BEAM_TOKENS, lambda steps: (*args, jnp.arange(steps))),
        claims=[
            claim(
                f"stablehlo_ops <= {3 / BEAM_TOKENS} * reference",
                "the loop holds the model once for each token, scan once",
            ),
            claim("aliased_bytes >= donated_bytes", "the cache comes back in the memory that it came in"),
            claim("temp_bytes <= 2.5 * donated_bytes", "reordering needs one more cache, not one for each token"),
            claim("matmul_flops == analytic_flops", "each beam reads one token each time"),
        ],
    )
