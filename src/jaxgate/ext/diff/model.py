"""Two sides beside each other: runs, commits, or kinds of hardware, case by case and quantity by quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from jaxgate.ext.history.model import HistoryPoint


class Way(StrEnum):
    """What the second side is, seen from the first."""

    WORSE = "WORSE"
    BETTER = "BETTER"
    MOVED = "MOVED"
    """Another number, of which nothing says that it is worse: other hardware, a release line, or a quantity that does not gate."""
    SAME = "SAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """One side."""

    name: str  # as the user named it
    about: str  # what it is, in words: when, which commit, which jax
    cases: Mapping[str, tuple[HistoryPoint, ...]]  # by name; one of several kinds of hardware stands once for each


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityDiff:
    """One quantity of a case, on both sides."""

    name: str
    first: float
    second: float
    way: Way

    @property
    def ratio(self) -> float | None:
        """The second as a multiple of the first; ``None`` of nothing."""
        return self.second / self.first if self.first else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDiff:
    """One case that both sides have."""

    case: str  # its name; with its hardware where a side has it on several
    first: HistoryPoint
    second: HistoryPoint
    comparable: bool  # whether both are of the same hardware and release line, so that worse and better can be told
    same_program: bool | None  # whether both have the same program; `None` if that is not known
    facts: tuple[QuantityDiff, ...]  # what differs of the facts, the largest difference first
    # phases and `run_ns` of both; they were taken at two moments, and nothing is judged by them
    times: tuple[QuantityDiff, ...]
    unknown: Mapping[str, str]  # facts that one side has and the other lacks, each with the side that has it

    @property
    def way(self) -> Way:
        """The way of the severest fact."""
        found = {fact.way for fact in self.facts}
        return next((way for way in Way if way in found), Way.SAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """Two sides."""

    first: DiffSide
    second: DiffSide
    cases: tuple[CaseDiff, ...]  # cases that both have: worse ones first, then by the largest difference
    only_first: tuple[str, ...]  # names of cases that only the first has
    only_second: tuple[str, ...]  # names of the second's

    def of(self, way: Way) -> tuple[CaseDiff, ...]:
        """The cases that went that way."""
        return tuple(case for case in self.cases if case.way is way)
