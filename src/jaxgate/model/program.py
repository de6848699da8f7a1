"""A program that can be compiled again: what ``jax.export`` made of a subject, and how to call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxgate.model.numbers import Strict

SUFFIX = ".export.gz"
"""The ending of a stored program's file."""


class UnreachableError(Exception):
    """A store of programs beside git did not answer; the text says which, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRecord(Strict):
    """What a baseline says of its stored program."""

    digest: str | None  # SHA-256 of the serialised program; `None` if it is kept as a fingerprint only
    donated: tuple[int, ...]  # positions of the donated arrays among the arguments, flattened
    # for each argument, flattened, the output that the next step takes it from; `None` keeps it. The whole is `None`
    # where nothing is threaded.
    feeds: tuple[int | None, ...] | None
    why_not: str  # why there is no program, where there is none
    options: Mapping[str, str] = field(default_factory=dict)  # compiler options that it is compiled with

    @property
    def stored(self) -> bool:
        """Whether the program itself was kept."""
        return self.digest is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgram:
    """A serialised program with its record."""

    record: ProgramRecord
    content: bytes  # bytes of `jax.export`'s format, without paths and source lines; empty if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two programs of a duel that are given the same arguments."""

    now: StoredProgram  # Today's program
    baseline: StoredProgram  # the other one
    leaves: Sequence[Any]  # the arguments of both, flattened
    calls: tuple[int, int] = (1, 1)  # how often one call of today's side calls its program, and one of the other
