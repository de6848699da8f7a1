"""What profiles of two programs say: where the time of a step goes, operation by operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from jaxgate.model.roofline import Roofline

Side = Literal["now", "baseline", "reference"]
"""Whose program was profiled: today's, the baseline's compiled here, or the case's naive way."""


class Operation(NamedTuple):
    """What to call an operation of a compiled program."""

    name: str  # its author's name for it, with scopes: `attention/softmax/exp`
    line: str  # `file:line` of the project; empty where none is known
    collective: bool = False  # whether it moves data between devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One operation while it ran."""

    thread: int  # where it ran: operations of one thread lie within each other, those of two run side by side
    name: str  # the operation, as the table names it
    begin_ns: float  # on the profile's clock
    end_ns: float  # on the profile's clock
    device: int | None = None  # the accelerator it ran on; `None` on a host, whose threads work for all of its devices
    collective: bool = False  # whether it moves data between devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Collectives of one device in one step."""

    total_ns: float  # time in which at least one was under way
    exposed_ns: float  # the part of it in which the device computed nothing

    @property
    def overlap(self) -> float | None:
        """Share that computation hides; ``None`` where nothing was moved."""
        return None if self.total_ns <= 0 else 1 - self.exposed_ns / self.total_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """One step, or the mean of some, its wall time divided among the operations that ran."""

    wall_ns: float  # from the call until its result was there
    times_ns: Mapping[str, float]  # share of each operation, and of each gap between two; they add up to `wall_ns`
    communication: Communication | None = None  # its collectives, where devices can be distinguished
    # of a mean the largest difference of one operation between two halves of its steps: less means nothing
    floor_ns: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """An operation on both sides."""

    name: str  # its JAX name, with scopes: `attention/softmax/exp`; or of a gap, what ran before it
    line: str  # line of the project that made it, where known
    now_ns: float  # its share of today's step
    other_ns: float  # its share of the other side's step
    gap: bool = False  # whether it is time in which no operation ran

    @property
    def more_ns(self) -> float:
        """By how much it takes longer now."""
        return self.now_ns - self.other_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTable:
    """Two typical steps, row by row. All rows, and what was folded, add up to the steps."""

    other: Side | Literal[""]  # whose the other side is; empty where only today's program was profiled
    now_ns: float  # today's step
    other_ns: float  # the other side's step
    floor_ns: float  # differences below it mean nothing
    rows: tuple[OpRow, ...]  # rows that moved beyond the floor, the largest difference first
    folded: int  # how many others there are
    folded_now_ns: float  # what those take of today's step
    folded_other_ns: float  # what they take of the other's
    communication: Communication | None = None  # collectives of today's step, where devices can be distinguished
    other_communication: Communication | None = None  # the other step's
    waits_in: str = ""  # the collective that takes longest in today's step, with its line

    @property
    def more_ns(self) -> float:
        """By how much today's step is longer."""
        return self.now_ns - self.other_ns

    @property
    def grown_ns(self) -> float:
        """By how much all that takes longer does; what got quicker is left out."""
        folded = max(0.0, self.folded_now_ns - self.folded_other_ns)
        return folded + sum(row.more_ns for row in self.rows if row.more_ns > 0)

    @property
    def culprits(self) -> tuple[OpRow, ...]:
        """The rows that explain most of a longer step, at most three; none if the profile does not show any.

        Gaps grow whenever the machine is busy: an operation that explains a good part of the difference leads.
        """
        if not self.other or self.more_ns <= self.floor_ns:
            return ()
        slower = sorted((row for row in self.rows if row.more_ns > 0), key=lambda row: -row.more_ns)
        leads = any(not row.gap and row.more_ns >= GOOD_PART * self.more_ns for row in slower)
        return tuple(sorted(slower, key=lambda row: leads and row.gap)[:MAX_CULPRITS])


MAX_CULPRITS = 3
MOST = 0.5
"""Of a difference: an operation with as much explains it."""
GOOD_PART = 0.25
"""Of a difference: with as much, an operation comes before any gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTimes:
    """A step of today's program on one of several processes."""

    rank: str  # which one, for people
    step_ns: float  # its step
    communication: Communication | None  # its collectives, where its devices can be distinguished
    waits_in: str  # the collective that takes most of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What was captured of a case, for its report."""

    folder: str  # the bundle, relative to the project; empty if there is none
    table: OpTable | None = None  # the operations; `None` if no profile could be read
    ranks: tuple[RankTimes, ...] = ()  # a step on each rank, where there are several
    # of the other sides, where they were compiled for a target
    rooflines: Mapping[Side, Roofline] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=())  # what could not be captured, and why; what was closed
    sides: tuple[Side, ...] = ()  # which sides have a profile
    seconds: float = 0.0  # what profiling, reading and writing took
    incomplete: bool = False  # whether something could not be written
