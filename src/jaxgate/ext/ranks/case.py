"""One case in lock-step: what the ranks decide together, and a duel in which the slowest of them counts."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from jaxgate.ext.ranks.barrier import LeftError, RankBarrier
from jaxgate.ext.ranks.leader import Leader
from jaxgate.ext.ranks.transport import Message
from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.model.numbers import Contract
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


class RankedCase:
    """One case in lock-step: the same decisions on all ranks, none enters a stage before all have left the last."""

    def __init__(self, station: RankBarrier, case: str) -> None:
        self._station, self._case, self.name = station, case, station.name
        self.worked: list[list[list[float]]] = []
        self.left: Message | None = None  # why this rank could not go on with what all did

    def first(self, what: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Give all ranks the numbers of rank 0."""
        return tuple(self._station.meet(f"`{self._case}`, {what}", numbers, lambda values: values[0]))

    def anyone(self, what: str, yes: bool) -> bool:  # noqa: FBT001 - it is the question
        """Whether any rank says yes."""
        return bool(self._station.meet(f"`{self._case}`, {what}", yes, any))

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
            "comparing the ranks before the first call",
            f"expected {what} to be the same on all ranks, found {zero['line']} on {zero['name']} and {other['line']} on "
            f"{other['name']}",
        )

    def stages(self, progress: Callable[[str], None]) -> Callable[[str], None]:
        """A teller of progress that waits for the others at the door of each stage."""

        def enter(stage: str) -> None:
            progress(stage)  # on rank 0 it takes the machine for what is timed, for all that run there
            self._station.meet(f"`{self._case}`, {stage}")

        return enter

    def _sharing(self) -> int:
        """How many ranks share the cores of this machine; 0 where each has a device of its own."""
        alone = {line.host for line in self._station.lines} == {socket.gethostname()}
        return self._station.count if alone and devices_here()[0] == "cpu" else 0

    def each(self, what: str, value: Any) -> list[Any]:
        """Bring together what every rank has."""
        return list(self._station.meet(f"`{self._case}`, {what}", value, list))

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        """Call the others, who wait for the verdict, to do with rank 0 what the block does; all are through when it ends."""
        station = self._station
        if self.left is not None:  # the others wait for the verdict, or in what this rank has left
            raise LeftError(self.left["stage"], self.left["reason"])
        if isinstance(station, Leader):
            station.gather(verdict_of(self._case))
            station.answer({"do": what})
        try:
            yield
            station.meet(f"`{self._case}`, the end of {what}")
        except BaseException as error:  # a time limit, Ctrl-C: the others must know
            self.left = left_by(error)
            raise
        finally:
            station.alone = isinstance(station, Leader)  # it judges again

    def side(self, side: Side) -> RankedSide:
        """A side of a duel; what the last two of a case worked is kept, today's first."""
        sharing = self._sharing()
        fewest = FEWEST * max(1, -(-sharing // usable_cores()))
        sharing, fewest = self.first("what they share, and their bursts", (sharing, fewest))
        ranked = RankedSide(side, partial(self.each, "a burst"), shares=bool(sharing), fewest=fewest)
        self.worked = [*self.worked[-1:], ranked.own_ns]
        return ranked


def verdict_of(case: str) -> str:
    """Where the others wait for rank 0 to judge a case."""
    return f"the verdict of `{case}`"


def left_by(error: BaseException) -> Message:
    """What the others are told of a rank that cannot go on."""
    stage, reason = getattr(error, "stage", "measuring"), getattr(error, "reason", "")
    reason = reason or (describe(error) if isinstance(error, Exception) else type(error).__name__)
    largest = list(error.largest) if isinstance(error, ExhaustedError) else None
    return {"stage": stage, "reason": reason, "largest": largest, "induced": isinstance(error, LeftError)}


class RankedSide:
    """One side of a duel: all ranks are through with a burst before any begins the next, and the slowest one's time counts.

    Where ranks share the cores of one machine, that is the time that its processors worked for it: a rank that waits for a core
    waits for what no cluster has. Ranks that wait for each other longer, and work no more, are not seen there.

    Args:
        side: What is timed here.
        meet: Gives what each rank brings.
        shares: Whether ranks share the cores of this machine.
        fewest: How often a burst is repeated at least.

    Attributes:
        own_ns: What processors worked for a call of each rank, once for each burst; empty where no rank shares its cores.
    """

    def __init__(self, side: Side, meet: Callable[[Any], Any], *, shares: bool, fewest: int) -> None:
        self._side, self._meet, self._shares, self._fewest = side, meet, shares, fewest
        self.own_ns: list[list[float]] = []
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


def first_other(found: Sequence[Sequence[str]]) -> int:
    """The first place at which not all lists have the same; behind the shortest where only their lengths differ."""
    return next((at for at, items in enumerate(zip(*found, strict=False)) if len(set(items)) > 1), min(map(len, found)))
