"""Plain data: a mistake in a workload, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A mistake that somebody makes, as a small diff on a file of the catalogue.

    Attributes:
        name: What the author did, as a clause.
        file: The file, for example ``workloads/scan/rnn.py``.
        case: Sentence of the case that must turn red.
        edits: Replacements of text that stands exactly once in the file.
        moves: Facts, or quantities of claims, of which at least one must be REGRESSED. Empty where the case must not
            be judged at all.
        status: What the verdict must be.
        culprit: What the first culprit line must say (a regular expression, case ignored); of a case that is not
            judged, what its ``found`` row must say.
        at: Texts of the edited file; the line must name the file and line of one of them. Empty where the culprit has
            no line.
    """

    name: str
    file: str
    case: str
    edits: tuple[tuple[str, str], ...]
    moves: frozenset[str] = frozenset()
    status: str = "REGRESSED"
    culprit: str = ""
    at: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a plant that no outcome could miss."""
        if not self.edits or not (self.culprit or self.at):
            raise ValueError(f"{self.name}: expected an edit and a culprit")
        if (self.status == "REGRESSED") != bool(self.moves):
            raise ValueError(f"{self.name}: expected facts to move where it is REGRESSED, and nowhere else")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the engine said of one plant.

    Attributes:
        name: Of the plant.
        family: Module of ``tests/plants`` that it stands in.
        status: The verdict's status.
        moved: Quantities that were REGRESSED, worst first.
        line: The first culprit line as printed; of a case without one, its ``found`` row.
        caught: Whether the right verdict was given for the right reason.
        blamed: Whether that line is right.
        why: What is wrong, for a person.
        seconds: Time it took.
    """

    name: str
    family: str
    status: str = ""
    moved: tuple[str, ...] = ()
    line: str = ""
    caught: bool = False
    blamed: bool = False
    why: str = ""
    seconds: float = 0.0
