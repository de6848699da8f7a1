"""A search for the first bad revision of a range: what it asks, what it measured, and what of it is kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from jaxgate.model.numbers import Strict

BISECTION_SCHEMA = 1
RUN_TIME = "run_ns"
"""The quantity of a search that the clock decides; all others are facts."""


class Mark(StrEnum):
    """What a search knows of a revision."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


AskedSide = Literal["good", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity(Strict):
    """The number that a search follows."""

    name: str  # of a fact, or `run_ns`: then its figures are ratios to the good side
    good: float  # its figure on the good side
    bad: float  # its figure on the bad side
    # units that a figure may be nearer to the bad side than the good figure, and still be like it
    good_tolerance: float
    bad_tolerance: float  # units that a figure may differ from the bad one, and still be like it
    gain: bool = False  # whether it is better on the bad side: what made it so is searched for

    @property
    def clocked(self) -> bool:
        """Whether duels decide."""
        return self.name == RUN_TIME

    def is_like_good(self, figure: float) -> bool:
        """Whether a figure is the good side's, or lies on the other side of it than the bad one."""
        towards_bad = 1 if self.bad > self.good else -1
        return (figure - self.good) * towards_bad <= self.good_tolerance

    def is_like_bad(self, figure: float) -> bool:
        """Whether a figure is the bad side's."""
        return abs(figure - self.bad) <= self.bad_tolerance

    def mark(self, figure: float, asked: AskedSide) -> Mark:
        """Mark a revision by its figure: bad if that is unlike the good side's, or like the bad side's, as was asked."""
        bad = not self.is_like_good(figure) if asked == "good" else self.is_like_bad(figure)
        return Mark.BAD if bad else Mark.GOOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Strict):
    """One revision that was tried."""

    revision: str  # a commit or a release
    mark: Mark  # what is known of it now
    figure: float | None  # of the quantity; `None` where it was skipped
    why: str  # what decided; where it was skipped, why it could not be measured
    text: str = ""  # the red text of its comparison with the good side, where a duel was run


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection(Strict):
    """A search as far as it came."""

    schema: int = BISECTION_SCHEMA
    copied: bool | None = None  # whether today's tests lie over each revision; `None` while that is not known
    quantity: Quantity | None = None  # what is searched for; `None` while that is not known
    others: tuple[str, ...] = ()  # other facts that moved, by name
    text: str = ""  # the text of the comparison of both sides
    probes: tuple[Probe, ...] = ()  # what was tried between the sides, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What remains of a range."""

    first_bad: Sequence[str]  # the revisions that may be the first bad one, oldest first
    following: str | None  # the one to try; `None` if none is left that could be

    @property
    def steps(self) -> int:
        """How many steps are left, about."""
        return max(len(self.first_bad) - 1, 0).bit_length()
