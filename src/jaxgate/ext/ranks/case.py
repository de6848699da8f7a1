"""One case in lock-step: what the ranks decide together, and a duel in which the slowest of them counts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from jaxgate.ext.ranks.barrier import BrokenRanksError, LeftError, RankBarrier, first
from jaxgate.ext.ranks.peers import first_other
from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.model.numbers import Contract
from jaxgate.observe.arguments.lockstep import Lockstep
from jaxgate.observe.duel.duel import Side
from jaxgate.observe.errors import describe
from jaxgate.observe.machine.environment import fingerprint
from jaxgate.observe.machine.process import usable_cores
from jaxgate.observe.machine.virtual_devices import devices_here
from jaxgate.observe.trace.clocks import Clock

_ADDRESS = re.compile(r"\b0x[0-9a-f]+")
"""Of an object in memory: another one in each process."""
FEWEST, MOST, STEADY_NS = 3, 10, 40_000_000
"""How often a burst is repeated, as all ranks are rarely undisturbed at once: the least time of each rank counts. More than so many
where ranks are more than the cores that they share."""


class RankedCase(Lockstep):
    """One case in lock-step: the same decisions on all ranks, none enters a stage before all have left the last."""

    def __init__(self, station: RankBarrier, case: str) -> None:
        self._station, self._case, self.name = station, case, station.name
        self.worked: list[list[list[float]]] = []

    def first(self, what: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Give all ranks the numbers of rank 0."""
        return tuple(self.each(what, numbers)[0])

    def anyone(self, what: str, yes: bool) -> bool:  # noqa: FBT001 - it is the question
        """Whether any rank says yes."""
        return any(self.each(what, yes))

    def same(self, what: str, text: Callable[[], str]) -> None:
        """Compare the texts of all ranks, by a hash; where it differs line by line, by hashes, and bring the first other line."""
        where, mine = f"`{self._case}`, {what}", [line.strip() for line in _ADDRESS.sub("", text()).splitlines()]
        if not self._station.meet(where, fingerprint(mine), lambda values: len(set(values)) > 1):
            return
        first = self._station.meet(f"{where}, line by line", [fingerprint(line)[:8] for line in mine], first_other)
        own = {"name": self._station.name, "line": mine[first][:200] if first < len(mine) else "no more of it"}
        zero, *others = self._station.meet(f"{where}, its first other line", own, list)
        other = next((one for one in others if one["line"] != zero["line"]), others[0])
        raise InvalidCaseError(
            "comparing the ranks",
            f"expected {what} to be the same on all ranks, found {zero['line']} on {zero['name']} and {other['line']} on "
            f"{other['name']}",
        )

    def stages(self, progress: Callable[[str], None]) -> Callable[[str], None]:
        """A teller of progress that waits for the others at the door of each stage."""

        def enter(stage: str) -> None:
            progress(stage)  # on rank 0 it takes the machine for what is timed, for all that run there
            self._station.meet(f"`{self._case}`, {stage}")

        return enter

    def each(self, what: str, value: Any) -> list[Any]:
        """Bring together what every rank has."""
        return list(self._station.meet(f"`{self._case}`, {what}", value, list))

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        """Call the others, who wait for the verdict, to do with rank 0 what the block does; all are through when it ends."""
        station = self._station
        try:
            if station.rank == 0:
                station.meet(verdict_of(self._case), {"do": what}, first)
            yield
            station.meet(f"`{self._case}`, the end of {what}")
        except BaseException as error:  # a time limit, Ctrl-C: the others must know
            self.leave(error)
            raise
        finally:
            station.alone = station.rank == 0  # it judges again

    def leave(self, error: BaseException) -> None:
        """Take all ranks out of a case that this one cannot go on with; where another rank has, this one knows why."""
        if isinstance(error, LeftError | BrokenRanksError):
            return
        stage, reason = getattr(error, "stage", "measuring"), getattr(error, "reason", "")
        reason = reason or (describe(error) if isinstance(error, Exception) else type(error).__name__)
        largest = list(error.largest) if isinstance(error, ExhaustedError) else None
        with suppress(LeftError):
            left = {"stage": stage, "reason": f"{reason} (on {self.name})", "largest": largest}
            self._station.meet("", left=left)

    def side(self, side: Side) -> RankedSide:
        """A side of a duel; what the last two of a case worked is kept, today's first."""
        on_cores = self._station.on_one_machine and devices_here()[0] == "cpu"  # which the ranks share
        sharing = self._station.count if on_cores else 0
        fewest = FEWEST * max(1, -(-sharing // usable_cores()))
        sharing, fewest = self.first("what they share, and their bursts", (sharing, fewest))
        ranked = RankedSide(side, partial(self.each, "a burst"), shares=bool(sharing), fewest=fewest)
        self.worked = [*self.worked[-1:], ranked.own_ns]
        return ranked


def verdict_of(case: str) -> str:
    """Where the others wait for rank 0 to judge a case."""
    return f"the verdict of `{case}`"


class RankedSide:
    """One side of a duel: all ranks are through with a burst before any begins the next, and the slowest one's time counts.

    Where ranks share the cores of one machine, that is the time that its processors worked for it: a rank that waits for a core
    waits for what no cluster has. Ranks that wait for each other longer, and work no more, are not seen there.

    ``fewest`` is how often a burst is repeated at least; ``meet`` gives what each rank brings.
    """

    def __init__(self, side: Side, meet: Callable[[Any], Any], *, shares: bool, fewest: int) -> None:
        self._side, self._meet, self._shares, self._fewest = side, meet, shares, fewest
        self.own_ns: list[list[float]] = []  # by burst what each processor worked for a call; only of shared cores
        self._took_ns = STEADY_NS

    @property
    def contract(self) -> Contract:
        """See ``Side``."""
        return self._side.contract

    @property
    def consumed(self) -> bool:
        """See ``Side``."""
        return self._side.consumed

    def results(self) -> list[np.ndarray[Any, Any]] | None:
        """See ``Side``."""
        return self._side.results()

    def burst(self, calls: int, clock: Clock) -> int:
        """See ``Side``."""
        took, own = [], []
        for _ in range(max(self._fewest, min(MOST, STEADY_NS // self._took_ns))):
            seen: list[int] = []

            def both(seen: list[int] = seen) -> int:
                seen.append(time.process_time_ns())
                return clock()

            took.append(self._side.burst(calls, both))
            own.append(sum(seen[1::2]) - sum(seen[::2]))  # a side reads its clock before and after what it times
        found = self._meet([min(took), min(own)])
        self._took_ns = max(1, *(took for took, _ in found))
        if not self._shares:
            return int(self._took_ns)
        self.own_ns.append([own / calls for _, own in found])
        return max(int(own) for _, own in found)
