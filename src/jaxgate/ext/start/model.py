"""What one start of a job shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LIMITS: Mapping[str, float] = {"missed_programs": 0, "repeated_programs": 0}
"""What is counted, and how much of it may be: programs that the second process compiles though the first one kept them, and
programs that one process asks the compiler for again."""
PHASES = ("imports", "trace", "lower", "compile", "load", "rest")
"""Where the time goes, in order: the process up to the call of ``start``, then in JAX by what it does, then all else."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was asked for."""

    function: str
    where: str  # the project's line that called, `file:line`; empty if no frame is the project's
    loaded: bool  # whether the compile cache had it


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """One process, up to the first result."""

    programs: Sequence[Program]  # in the order in which they were asked for
    seconds: Mapping[str, float] = field(default_factory=dict)  # by `PHASES`

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Started:
        """Make one of what the process left."""
        return cls(programs=[Program(*one) for one in said["programs"]], seconds=said["seconds"])

    @property
    def total_s(self) -> float:
        """From the start of the process to the first result."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        """The total, and the phases that take a tenth of it and more."""
        parts = [f"{name} {self.seconds[name]:.2g}" for name in PHASES if self.seconds[name] >= self.total_s / 10]
        return f"{self.total_s:.2g} s ({', '.join(parts)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How a job starts, and what that may need.

    Raises:
        TypeError: If ``start`` is no function.
        ValueError: If ``allow`` names what is not counted, or a limit is none.
    """

    start: Callable[[], Any]  # gives what the job waits for first
    programs: int | None = None  # that are asked for until the first result
    seconds: float | None = None  # from the start of the second process to its first result
    allow: Mapping[str, float] = field(default_factory=dict)  # more than `LIMITS`

    def __post_init__(self) -> None:
        """Refuse what says nothing."""
        if not callable(self.start):
            raise TypeError(f"expected a function without arguments, found {self.start!r}")
        if unknown := sorted(set(self.allow) - set(LIMITS)):
            raise ValueError(f"expected some of {', '.join(LIMITS)} in allow=, found {', '.join(unknown)}")
        for name in ("programs", "seconds"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise ValueError(f"expected {name}= above 0, found {limit!r}")
