"""A second opinion on what a program computes: by whom, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jaxgate.model.measurement import InvalidCaseError

SWITCHED_OFF = "switched off (perf_opinion is 0)"
"""Why nobody is asked where nobody wants it."""


class OpinionBy(StrEnum):
    """Who else computed a result."""

    NOBODY = ""
    INTERPRETER = "StableHLO's reference interpreter"
    SECOND_COMPILE = "a second compile without library fusions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What somebody else says of the result of a compiled program, for the case's own arguments."""

    by: OpinionBy = OpinionBy.NOBODY  # who was asked
    why_not: str = ""  # why nobody was, or nothing came of it; empty otherwise
    # results that float error alone moves so far that nothing can be said of them, by their paths
    left_alone: tuple[str, ...] = ()
    # the largest difference of a result, as a share of its largest value; `None` if none was compared
    apart: float | None = None
    seconds: float = 0.0  # what it took
    wrong: str = ""  # where the two differ by more than float error, in one line; empty if they do not

    def __post_init__(self) -> None:
        """Refuse an opinion that neither compared anything nor says why."""
        if bool(self.by) == bool(self.why_not):
            raise ValueError(f"expected who gave the opinion or why nobody did, found {self.by!r} and {self.why_not!r}")


class WrongResultError(InvalidCaseError):
    """The compiled program computes something else than it means."""

    def __init__(self, opinion: Opinion) -> None:
        super().__init__("checking the result", opinion.wrong)
        self.opinion = opinion
