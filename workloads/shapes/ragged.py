"""Texts that follow one another without gaps, as a tokenizer gives them: padded on the host before they are sent.

The naive way hands over each text in its own shape: a launch for each, a program for each new length, for ever. Here
every call has other lengths than the one before, and every token has to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree
from workloads.shapes.encoder import SIZES, cycle, draw_tokens, encode, lengths_of, make_params

CASES = Family("shapes")

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
    """Score texts in a call for each bucket that is needed.

    Args:
        score: The jitted network.
        rows_of: Rows in a call of each length, the longest last: what no text fills is empty, so that a bucket has one
            shape, however many texts are of its length.
    """

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
    """Scores of texts that are filled up to so many shapes, against each in its own."""
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
