"""What profiles of two programs say: where the time of a step goes, operation by operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from jaxgate.model.measurement import Roofline

Side = Literal["now", "baseline", "reference"]
"""Whose program was profiled: today's, the baseline's compiled here, or the case's naive way."""


class Operation(NamedTuple):
    """What to call an operation of a compiled program.

    Attributes:
        name: Its author's name for it, with scopes: ``attention/softmax/exp``.
        line: ``file:line`` of the project; empty where none is known.
        collective: Whether it moves data between devices.
    """

    name: str
    line: str
    collective: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One operation while it ran.

    Attributes:
        thread: Where it ran: operations of one thread lie within each other, those of two run side by side.
        name: The operation, as the table names it.
        begin_ns: On the profile's clock.
        end_ns: Likewise.
        device: The accelerator it ran on; ``None`` on a host, whose threads work for all of its devices.
        collective: Whether it moves data between devices.
    """

    thread: int
    name: str
    begin_ns: float
    end_ns: float
    device: int | None = None
    collective: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Collectives of one device in one step.

    Attributes:
        total_ns: Time in which at least one was under way.
        exposed_ns: The part of it in which the device computed nothing.
    """

    total_ns: float
    exposed_ns: float

    @property
    def overlap(self) -> float | None:
        """Share that computation hides; ``None`` where nothing was moved."""
        return None if self.total_ns <= 0 else 1 - self.exposed_ns / self.total_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """One step, its wall time divided among the operations that ran.

    Attributes:
        wall_ns: From the call until its result was there.
        times_ns: Share of each operation, and of each gap between two; they add up to ``wall_ns``.
        communication: Its collectives, where devices can be distinguished.
    """

    wall_ns: float
    times_ns: Mapping[str, float]
    communication: Communication | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTimes:
    """A side's typical step.

    Attributes:
        wall_ns: Its mean wall time.
        times_ns: Mean share of each operation and gap; they add up to ``wall_ns``.
        floor_ns: Largest difference of one operation between two halves of these very steps: less means nothing.
        steps: How many steps the means are of.
        communication: Its collectives, where devices can be distinguished.
    """

    wall_ns: float
    times_ns: Mapping[str, float]
    floor_ns: float
    steps: int
    communication: Communication | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """An operation on both sides.

    Attributes:
        name: Its JAX name, with scopes: ``attention/softmax/exp``; or of a gap, what ran before it.
        line: Line of the project that made it, where known.
        now_ns: Its share of today's step.
        other_ns: Its share of the other side's step.
        gap: Whether it is time in which no operation ran.
    """

    name: str
    line: str
    now_ns: float
    other_ns: float
    gap: bool = False

    @property
    def more_ns(self) -> float:
        """By how much it takes longer now."""
        return self.now_ns - self.other_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTable:
    """Two typical steps, row by row. All rows, and what was folded, add up to the steps.

    Attributes:
        other: Whose the other side is; empty where only today's program was profiled.
        now_ns: Today's step.
        other_ns: The other's.
        floor_ns: Differences below it mean nothing.
        rows: Those that moved beyond the floor, the largest difference first.
        folded: How many others there are.
        folded_now_ns: What those take of today's step.
        folded_other_ns: What they take of the other's.
        communication: Collectives of today's step, where devices can be distinguished.
        other_communication: Those of the other's.
    """

    other: Side | Literal[""]
    now_ns: float
    other_ns: float
    floor_ns: float
    rows: tuple[OpRow, ...]
    folded: int
    folded_now_ns: float
    folded_other_ns: float
    communication: Communication | None = None
    other_communication: Communication | None = None

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
class Capture:
    """What was captured of a case, for its report.

    Attributes:
        folder: The bundle, relative to the project; empty if there is none.
        table: The operations; ``None`` if no profile could be read.
        rooflines: Of the other sides, where they were compiled for a target.
        notes: What could not be captured, and why; what was closed.
        sides: Which sides have a profile.
        seconds: What profiling, reading and writing took.
        incomplete: Whether something could not be written.
    """

    folder: str
    table: OpTable | None = None
    rooflines: Mapping[Side, Roofline] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=())
    sides: tuple[Side, ...] = ()
    seconds: float = 0.0
    incomplete: bool = False
