"""Which cases belong together: by their names alone, so that any suite has curves and not the catalogue only.

A name is words with hyphens. Cases whose names differ in one number are a curve over that number; cases that begin alike
and end alike, with other words between, are variants of one thing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(\d+(?:\.\d+)?)(?:[-_ ]?([kKMGT]?i?B|bytes?)(?![A-Za-z0-9]))?(?![A-Za-z0-9_]|\.\d)"
)
"""A number that is a word of its own, with a unit of size: not the ``16`` of ``bfloat16``, the ``2`` of ``2x4``."""
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NEXT_WORD = re.compile(r"[-_ ]([A-Za-z]+)")
_MOST_NUMBERS = 8
"""A name with more is nobody's idea of a curve."""
HOLE = "N"
"""Stands for the number in the name of a curve."""
BYTES = "bytes"
_VERSUS = "-vs-"
_WORDS_IN_COMMON = 2
"""Names that share one word only, ``train``, are not variants of one thing."""
_BRANCHES = 3
"""Two that differ in a word are a pair; the table shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A curve over a number in the names.

    Attributes:
        name: What its cases share, with ``N`` for the number: ``scan/rnn-forward-over-N-steps-scan-vs-loop``.
        unit: What the number counts: ``steps``; ``bytes`` of sizes; empty if the name does not say.
        members: The number and the name of each case, by the number.
    """

    name: str
    unit: str
    members: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """Cases that do one thing in several ways.

    Attributes:
        name: What they share, with ``…`` for the rest: ``pjit/pjit-mlp-train-step-…-vs-gathered``.
        members: What is its own in each name, and the name, in the order given.
    """

    name: str
    members: tuple[tuple[str, str], ...]


def find_series(names: Iterable[str]) -> tuple[Series, ...]:
    """The curves among some cases, in the order of their first case; a case may be of several."""
    found: dict[str, dict[float, str]] = defaultdict(dict)
    shown: dict[str, tuple[str, str]] = {}
    for name in names:
        for key, pattern, unit, value in _holes(name):
            found[key].setdefault(value, name)
            shown[key] = max(shown.get(key, ("", "")), (pattern, unit), key=lambda pair: len(pair[0]))
    return tuple(
        Series(name=shown[key][0], unit=shown[key][1], members=tuple(sorted(members.items())))
        for key, members in found.items()
        if len(members) > 1
    )


def _holes(name: str) -> Iterator[tuple[str, str, str, float]]:
    """For each number of a name: what is the same in the names of its curve, how it is shown, its unit, and its value."""
    for match in islice(_NUMBER.finditer(name), _MOST_NUMBERS):
        size, value = match[2], float(match[1])
        before, after = f"{name[: match.start()]}{HOLE}", name[match.end() :]
        if size is not None:
            yield before + after, before + after, BYTES, value * _factor(size)
            continue
        word = _NEXT_WORD.match(after)
        unit = word[1] if word and word[1] != "vs" else ""
        one = after.replace(unit, unit.removesuffix("s"), 1)  # `1 device` has the curve of `2 devices`
        yield before + one, before + after, unit, value


def _factor(size: str) -> int:
    """How many bytes one of a unit has: ``KiB`` 1024, ``kB`` 1000, ``bytes`` 1."""
    if size.startswith("byte"):
        return 1
    prefix = size.removesuffix("B").removesuffix("i")
    return (_BINARY if "i" in size else _DECIMAL)[prefix]


def find_variants(names: Sequence[str]) -> tuple[Variants, ...]:
    """The groups of variants among some cases: three or more ways on, after a beginning of at least two words."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in names:
        family, _, sentence = name.rpartition("/")
        body, versus, other = sentence.partition(_VERSUS)
        groups[family, versus + other].append(body)
    found = []
    for (family, ending), bodies in groups.items():
        before = f"{family}/" if family else ""
        for shared, members in _branches([body.split("-") for body in bodies], ()):
            rests = tuple(
                ("-".join(words[len(shared) :]) or "as it is", f"{before}{'-'.join(words)}{ending}")
                for words in members
            )
            found.append(Variants(name=f"{before}{'-'.join(shared)}-…{ending}", members=rests))
    return tuple(found)


def _branches(names: list[list[str]], shared: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[list[str]]]]:
    """The first forks of a tree of words that have enough branches; what lies above is looked at first."""
    following: dict[str, list[list[str]]] = defaultdict(list)
    for words in names:
        if len(words) >= len(shared):
            following[words[len(shared)] if len(words) > len(shared) else ""].append(words)
    ways = [word for word in following if not _NUMBER.fullmatch(word)]  # numbers are a curve
    if len(shared) >= _WORDS_IN_COMMON and len(ways) >= _BRANCHES:
        yield shared, names
        return
    for word, members in following.items():
        if word and len(members) > 1:
            yield from _branches(members, (*shared, word))
