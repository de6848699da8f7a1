"""Plain data: a mistake that somebody makes, as a small diff on a text; what came of it; and all of that together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from jaxgate.model.numbers import ARRIVAL_FACTS, CALLED_FACTS

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = "tests/faults/programs/sources"

FAMILIES = (
    "retrace", "donation", "memory", "program", "collective", "constant", "callback", "widening", "sharding", "validity", "host",
    "structure",
)  # fmt: skip
"""Of the faults in the small programs; those of the catalogue are its own, and a slow-down is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A small diff, and what must be said of it."""

    name: str  # what the author did, as a clause
    # what must turn red: a program under `programs/sources`, the sentence of a case of the catalogue, or a test of
    # `slowdowns/programs.py`
    case: str
    file: str = ""  # the file that is edited, for example `workloads/scan/rnn.py`; of a small program its own
    kind: str = ""  # its family; of a fault in a small program one of `FAMILIES`
    edits: tuple[tuple[str, str], ...]  # replacements of text that stands exactly once in the file
    # facts, or quantities of claims, of which at least one must be REGRESSED. Empty where the case must not be judged
    # at all.
    moves: frozenset[str] = frozenset()
    status: str = "REGRESSED"  # what the verdict must be
    # what the first culprit line must say (a regular expression, case ignored): the argument's path, the operation, the
    # parameter; of a case that is not judged, what its `found` row must say
    culprit: str = ""
    # texts of the edited file; the line must name the file and line of one of them. Empty where the culprit has no
    # line: an argument, or something that is gone.
    at: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a fault of no family, or one that no outcome could miss."""
        if not self.edits or not (self.culprit or self.at):
            raise ValueError(f"{self.name}: expected an edit and a culprit")
        if (self.status == "REGRESSED") != bool(self.moves):
            raise ValueError(f"{self.name}: expected facts to move where it is REGRESSED, and nowhere else")
        if not self.file and self.kind not in FAMILIES:
            raise ValueError(f"{self.name}: expected a known kind, found {self.kind!r}")

    def __str__(self) -> str:
        """Name its test."""
        return f"{self.kind}-{self.name}".replace(" ", "-")

    @property
    def path(self) -> Path:
        """The file that is edited."""
        return REPOSITORY / (self.file or f"{SOURCES}/{self.case}.py")

    @property
    def needs_calls(self) -> bool:
        """Whether only a call shows it: a target's compiler could not say anything of it."""
        return self.status == "INVALID" or self.moves <= {*CALLED_FACTS, *ARRIVAL_FACTS}

    def planted(self, source: str | None = None) -> str:
        """The text of the file, or of another that stands for it, with the mistake in it.

        Raises:
            ValueError: If a text to replace does not stand there exactly once.
        """
        source = self.path.read_text() if source is None else source
        for old, new in self.edits:
            if (found := source.count(old)) != 1:
                raise ValueError(
                    f"{self.name}: expected {old!r} once in {self.path.relative_to(REPOSITORY)}, found {found}"
                )
            source = source.replace(old, new)
        return source

    def edited(self) -> list[int]:
        """The lines of the edited text that are other, and those after which some are gone."""
        matcher = SequenceMatcher(None, self.path.read_text().splitlines(), self.planted().splitlines(), autojunk=False)
        changes = (code[3:] for code in matcher.get_opcodes() if code[0] != "equal")
        return [line for first, last in changes for line in range(first + 1, max(last, first + 1) + 1)]

    def places(self, source: str, file: str = "") -> tuple[str, ...]:
        """Where in the edited text it may be blamed, as ``name.py:line``."""
        lines = enumerate(source.splitlines(), 1)
        name = file or self.path.name
        return tuple(f"{name}:{number}" for number, text in lines if any(part in text for part in self.at))


def faults_of(file: str = "", *, kind: str = "") -> Callable[..., Fault]:
    """Give what makes the faults of one file, or of one family: name, case, then each edit as a pair of old and new."""

    def fault(name: str, case: str, *edits: tuple[str, str], moves: Iterable[str] = (), **about: Any) -> Fault:
        return Fault(name=name, case=case, file=file, kind=kind, edits=edits, moves=frozenset(moves), **about)

    return fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A program that only looks different."""

    name: str  # the change of source
    case: str  # the program
    source: str  # its text after the change

    def __str__(self) -> str:
        """Name its test."""
        return f"{self.case}-{self.name}".replace(" ", "-")

    @property
    def path(self) -> Path:
        """The file of the program without the change."""
        return REPOSITORY / SOURCES / f"{self.case}.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the engine said of one edited text.

    Of a transformation that only looks like a change, ``caught`` says whether it was left alone.
    """

    name: str  # of the fault, or of the transformation
    kind: str  # the fault's family, or `unchanged`
    case: str  # what was judged
    status: str = ""  # the verdict's status
    moved: tuple[str, ...] = ()  # quantities that were REGRESSED, worst first
    line: str = ""  # the first culprit line as printed; of a case without one, its `found` row
    at: str = ""  # the line of the source at which it is shown
    caught: bool = False  # whether the right verdict was given for the right reason
    # whether that line is right: its first clause, which a person reads first, says what it must, and it has the place
    blamed: bool = False
    identical: bool = False  # whether the two programs were found identical
    why: str = ""  # what is wrong, for a person
    seconds: float = 0.0  # time it took


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """All outcomes."""

    faults: tuple[Outcome, ...]  # of the faults, in the order they are written
    unchanged: tuple[Outcome, ...]  # of the programs that only look different
    seconds: float  # time all of it took
    versions: str  # of JAX and Python
    target: str = ""  # what they were compiled for; empty for this machine
    left: int = 0  # faults and programs that were not tried on a target: they need calls
