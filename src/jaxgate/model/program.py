"""A program that can be compiled again: what ``jax.export`` made of a subject, and how to call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxgate.model.numbers import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRecord:
    """What a baseline says of its stored program.

    Attributes:
        digest: SHA-256 of the serialised program; ``None`` if it is kept as a fingerprint only.
        donated: Positions of the donated arrays among the arguments, flattened.
        feeds: For each argument, flattened, the output that the next step takes it from; ``None`` keeps it.
            The whole is ``None`` where nothing is threaded.
        why_not: Why there is no program, where there is none.
        options: Compiler options that it is compiled with.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    digest: str | None
    donated: tuple[int, ...]
    feeds: tuple[int | None, ...] | None
    why_not: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def stored(self) -> bool:
        """Whether the program itself was kept."""
        return self.digest is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgram:
    """A serialised program with its record.

    Attributes:
        content: Bytes of ``jax.export``'s format, without paths and source lines; empty if there is none.
    """

    record: ProgramRecord
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two programs of a duel that are given the same arguments.

    Attributes:
        now: Today's program.
        baseline: The other one.
        leaves: The arguments of both, flattened.
        calls: How often one call of today's side calls its program, and one of the other.
    """

    now: StoredProgram
    baseline: StoredProgram
    leaves: Sequence[Any]
    calls: tuple[int, int] = (1, 1)
