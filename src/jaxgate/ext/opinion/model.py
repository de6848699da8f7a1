"""A second opinion on what a program computes: by whom, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jaxgate.model.measurement import InvalidCaseError

SWITCHED_OFF = "switched off (--perf-opinion=0)"
"""Why nobody is asked where nobody wants it."""


class OpinionBy(StrEnum):
    """Who else computed a result."""

    NOBODY = ""
    INTERPRETER = "StableHLO's reference interpreter"
    SECOND_COMPILE = "a second compile without library fusions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What somebody else says of the result of a compiled program, for the case's own arguments.

    Attributes:
        by: Who was asked.
        why_not: Why nobody was, or nothing came of it; empty otherwise.
        left_alone: Results that float error alone moves so far that nothing can be said of them, by their paths.
        apart: The largest difference of a result, as a share of its largest value; ``None`` if none was compared.
        seconds: What it took.
        wrong: Where the two differ by more than float error, in one line; empty if they do not.
    """

    by: OpinionBy = OpinionBy.NOBODY
    why_not: str = ""
    left_alone: tuple[str, ...] = ()
    apart: float | None = None
    seconds: float = 0.0
    wrong: str = ""

    def __post_init__(self) -> None:
        """Refuse one that neither compared anything nor says why."""
        if bool(self.by) == bool(self.why_not):
            raise ValueError(f"expected who gave the opinion or why nobody did, found {self.by!r} and {self.why_not!r}")


class WrongResultError(InvalidCaseError):
    """The compiled program computes something else than it means.

    Attributes:
        opinion: Who says so.
    """

    def __init__(self, opinion: Opinion) -> None:
        super().__init__("checking the result", opinion.wrong)
        self.opinion = opinion
