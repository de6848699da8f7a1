"""A call of several programs as one side of a duel: the programs that plain Python launches, each as often as it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxgate.model import Contract
from jaxgate.observe.duel.duel import Contender
from jaxgate.observe.trace import Clock


@dataclass(frozen=True, slots=True)
class CallSide:
    """Some compiled programs, and how often one call calls each.

    Each program is timed in a burst of its own: what one gives to the next is Python's, which is not timed here.
    """

    parts: Sequence[tuple[Contender, int]]

    @property
    def contract(self) -> Contract:
        """What the time of a call means; that of all of them."""
        return self.parts[0][0].contract

    @property
    def consumed(self) -> bool:
        """Whether a burst of one of them can be of one call only."""
        return any(contender.consumed for contender, _ in self.parts)

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some calls take."""
        return sum(_burst(contender, calls * count, clock) for contender, count in self.parts)


def _burst(contender: Contender, calls: int, clock: Clock) -> int:
    if contender.consumed:
        return sum(contender.burst(1, clock) for _ in range(calls))
    return contender.burst(calls, clock)
