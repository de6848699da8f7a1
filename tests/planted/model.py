"""Plain data: a fault, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.mistakes import Mistake
from tests.mistakes import Outcome as AnyOutcome

PROGRAMS = Path(__file__).parent / "programs"

FAMILIES = (
    "retrace", "donation", "memory", "program", "collective", "constant", "callback", "widening", "sharding", "validity", "host",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Mistake):
    """A mistake in a base program.

    Attributes:
        kind: Its family, one of ``FAMILIES``.
        program: Module under ``programs/``.
    """

    kind: str
    program: str

    def __post_init__(self) -> None:
        """Refuse a fault of no family, or one that no outcome could miss."""
        Mistake.__post_init__(self)
        if self.kind not in FAMILIES:
            raise ValueError(f"{self.name}: expected a known kind, found {self.kind!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(AnyOutcome):
    """What the engine said of one edited program.

    Of a transformation that only looks like a change, ``caught`` says whether it was left alone.

    Attributes:
        kind: The fault's family, or ``unchanged``.
        program: The base program.
        first: Whether the first clause of the culprit line alone is right.
        identical: Whether the two programs were found identical.
    """

    kind: str
    program: str
    first: bool = False
    identical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """All outcomes.

    Attributes:
        faults: Of the faults, in the order they are written.
        unchanged: Of the programs that only look different.
        seconds: Time all of it took.
        versions: Of JAX and Python.
    """

    faults: tuple[Outcome, ...]
    unchanged: tuple[Outcome, ...]
    seconds: float
    versions: str
