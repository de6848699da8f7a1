"""Plain data: a fault, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"

FAMILIES = (
    "retrace", "donation", "memory", "program", "collective", "constant", "callback", "widening", "sharding", "validity", "host",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A mistake that somebody makes, as a small diff on a base program.

    Attributes:
        name: What the author did, as a clause.
        kind: Its family, one of ``FAMILIES``.
        program: Module under ``programs/``.
        edits: Replacements of text that stands exactly once in the program.
        moves: Facts of which at least one must be REGRESSED. Empty where the case must not be judged at all.
        status: What the verdict must be.
        culprit: What the first culprit line must say (a regular expression, case ignored): the argument's path,
            the operation, the parameter.
        at: Texts of the edited program; the line must name the file and line of one of them. Empty where the
            culprit has no line: an argument, or something that is gone.
    """

    name: str
    kind: str
    program: str
    edits: tuple[tuple[str, str], ...]
    moves: frozenset[str] = frozenset()
    status: str = "REGRESSED"
    culprit: str = ""
    at: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a fault that no outcome could miss."""
        if self.kind not in FAMILIES or not self.edits or not (self.culprit or self.at):
            raise ValueError(f"{self.name}: expected a known kind, an edit and a culprit")
        if (self.status == "REGRESSED") != bool(self.moves):
            raise ValueError(f"{self.name}: expected facts to move where it is REGRESSED, and nowhere else")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the engine said of one edited program.

    Attributes:
        name: Of the fault, or of the transformation and its program.
        kind: The fault's family, or ``unchanged``.
        program: The base program.
        status: The verdict's status.
        moved: Facts that were REGRESSED, worst first.
        line: The first culprit line as printed; of a case without one, its ``found`` row.
        caught: Whether the right verdict was given for the right reason; of an unchanged program, whether it
            was left alone.
        blamed: Whether the first culprit line is right.
        first: Whether the first clause of that line alone is right.
        identical: Whether the two programs were found identical.
        why: What is wrong, for a person.
        seconds: Time it took.
    """

    name: str
    kind: str
    program: str
    status: str = ""
    moved: tuple[str, ...] = ()
    line: str = ""
    caught: bool = False
    blamed: bool = False
    first: bool = False
    identical: bool = False
    why: str = ""
    seconds: float = 0.0


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
