"""One side of a duel, prepared: a program, or those that one call of plain Python launches, each as often as it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jaxgate.model import Contract, Match
from jaxgate.observe.duel.duel import Contender, prepare
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

    def results(self, most_bytes: int | None = None) -> list[np.ndarray[Any, Any]] | None:
        """What one call of each gives, on the host; ``None`` if it is more than so many bytes, where there is a limit."""
        found: list[np.ndarray[Any, Any]] = []
        for contender, _ in self.parts:
            left = None if most_bytes is None else most_bytes - sum(array.nbytes for array in found)
            given = contender.results(left)
            if given is None:
                return None
            found += given
        return found

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some calls take."""
        return sum(_burst(contender, calls * count, clock) for contender, count in self.parts)


def _burst(contender: Contender, calls: int, clock: Clock) -> int:
    if contender.consumed:
        return sum(contender.burst(1, clock) for _ in range(calls))
    return contender.burst(calls, clock)


Prepared = Contender | CallSide
"""A side of a duel in this process."""


def side_of(parts: Sequence[tuple[Contender, int]]) -> Prepared:
    """The side that calls some programs; a single one is a side by itself."""
    (only, count), *others = parts
    return only if count == 1 and not others else CallSide(parts)


def prepare_side(
    matches: Sequence[Match],
    side: Literal["now", "baseline"],
    contract: Contract,
    prepare: Callable[..., Contender] = prepare,
) -> Prepared:
    """Compile the programs of one side of a duel.

    Raises:
        NotReplayableError: If one cannot be read, compiled or called with its arguments.
    """
    if side == "now":
        return side_of([(prepare(one.now, one.leaves, contract), one.calls[0]) for one in matches])
    return side_of([(prepare(one.baseline, one.leaves, contract), one.calls[1]) for one in matches])
