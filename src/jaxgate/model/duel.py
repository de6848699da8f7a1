"""A duel: two programs timed in alternation in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import median

from jaxgate.model.decision import Decision
from jaxgate.model.numbers import Contract, Phases, Strict


class BrokenDuelError(ValueError):
    """A duel whose times mean nothing: something was traced, the clock went back, pairs are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel(Strict):
    """Raw times of two programs, taken in pairs within blocks of two pairs.

    A block is ABBA or BAAB, by a random order, so that drift within it cancels. A half-round is a few bursts
    of one side in a row; its time is the least of them.
    """

    now_ns: tuple[tuple[int, ...], ...]  # bursts of each half-round of today's program, in order: `[pair][burst]`
    baseline_ns: tuple[tuple[int, ...], ...]  # bursts of each half-round of the other program
    calls_per_burst: int  # calls in a burst, the same for both sides
    seed: int  # what the order was drawn from
    traces: int = 0  # traces and compiles while timing; anything but 0 makes the duel worthless
    # what a call's time means: in a row (`throughput`), or each waited for (`latency`)
    contract: Contract = "throughput"

    @property
    def logratios(self) -> tuple[float, ...]:
        """One ``ln(now / baseline)`` for each pair.

        Raises:
            BrokenDuelError: If a time is not positive: the clock stood still or went backwards.
        """
        return tuple(
            _logratio(min(now), min(before)) for now, before in zip(self.now_ns, self.baseline_ns, strict=True)
        )

    @property
    def noise_logratios(self) -> tuple[float, ...]:
        """Each side against itself within a block: what identical programs look like here.

        The sign alternates from block to block, so that drift does not pass for an offset.
        """
        found = []
        for side in (self.now_ns, self.baseline_ns):
            halves = [min(bursts) for bursts in side]
            for block, (first, second) in enumerate(zip(halves[0::2], halves[1::2], strict=False)):
                value = _logratio(first, second)
                found.append(value if block % 2 else -value)
        return tuple(found)

    def call_ns(self, side: Sequence[Sequence[int]]) -> float:
        """Median time of one call of a side, over its half-rounds."""
        return median(min(bursts) for bursts in side) / self.calls_per_burst


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceDuel:
    """The duel of subject and reference that decides a case's claims about run time, or why there is none."""

    duel: Duel | None = None  # the subject's times as today's program, the reference's as the other
    why_not: str = "no duel was run"  # why no duel was run
    remembered: bool = False  # whether it was run earlier, with the same programs, inputs, environment and hardware


def _logratio(left: int, right: int) -> float:
    if left <= 0 or right <= 0:
        raise BrokenDuelError(f"expected positive times, found {left} and {right} ns: the clock cannot be trusted")
    return log(left / right)


DUEL_BURST_NS = {"cpu": 5_000_000}
ACCELERATOR_BURST_NS = 20_000_000
"""The length of a burst on every platform but CPU."""
BURSTS = 3
"""Bursts in each half-round."""
LONG_CALL_NS = 10_000_000
"""A call that takes longer is its own burst, once for each half-round."""


@dataclass(frozen=True, slots=True)
class RepeatOutcome:
    """What one fresh process found."""

    case: Decision | None = None  # what its duel, or its time beside stored ones, says of the case
    control: Decision | None = None  # what its duel of a program with itself says
    problem: str = ""  # why there is no outcome
    has_control: bool = True  # whether there is a second side to swap; stored times have none
    blames_machine: bool = False  # whether the problem is the machine's fault
    phases: Phases | None = None  # the phases that it measured
