"""The smallest part of a program, or of both sides, that still shows what the whole shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from jaxgate.engine.reduce.delta_debugging import Move, Reduction, Step
from jaxgate.engine.reduce.oracles import Guarded, Oracle, Programs
from jaxgate.observe.repro import contents, edit

COARSE = 8
"""Into how many parts a program is divided to find where it can be cut: the middle is tried first."""


@dataclass(slots=True)
class Shrinking:
    """Ways to make programs smaller. Both sides change alike: what one loses the other one loses, too.

    Attributes:
        seats: The seat that each value gets where it becomes an input: no two share one.
    """

    seats: dict[str, int] = field(default_factory=dict)

    def moves(self) -> list[Move[Programs]]:
        """All of them, the boldest first."""
        return [
            Move(name="has its constants written out", parts=lambda _: ["all"], without=_fold, one_by_one=True),
            Move(name="is given values", parts=_shared, without=self._give),
            Move(name="returns less", parts=_ranges, without=_return_less, one_by_one=True),
            Move(name="returns one value", parts=_coarse, without=self._return_one, one_by_one=True),
            Move(name="leaves operations out", parts=_shared, without=_bypass),
            Move(name="does a loop once", parts=_loops, without=_unloop, one_by_one=True),
            Move(name="has smaller arrays", parts=_sizes, without=_resize, one_by_one=True),
            Move(name="counts less far", parts=_numbers, without=_renumber, one_by_one=True),
        ]

    def _return_one(self, programs: Programs, parts: Sequence[str]) -> Programs | None:
        return _all(programs, lambda text: edit.cut(text, output=parts[0]))

    def _give(self, programs: Programs, parts: Sequence[str]) -> Programs | None:
        for name in parts:
            self.seats.setdefault(name, 1000 + len(self.seats))
        return _all(programs, lambda text: edit.cut(text, inputs=parts, seats=self.seats))


def size(programs: Programs) -> tuple[int, ...]:
    """What shall become small: operations, then results, then numbers that are computed, then those that are counted to."""
    return (
        sum(contents.count(text) for text in programs),
        sum(contents.outputs_of(text) for text in programs),
        sum(contents.elements(text) for text in programs),
        sum(int(number) for text in programs for number in contents.numbers(text)),
    )


def reduce_programs(
    start: Programs,
    oracle: Oracle,
    *,
    budget_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Step[Programs]]:
    """Make programs smaller while they show it; each step was verified.

    Args:
        start: Programs that show it.
        oracle: Whether programs show it.
        budget_s: Seconds.
        clock: Seconds of some day.
    """
    end = clock() + budget_s
    search = Reduction(Shrinking().moves(), shows=Guarded(oracle), size=size, over=lambda: clock() >= end)
    yield from search.steps(start)


def _all(programs: Programs, change: Callable[[str], str | None]) -> Programs | None:
    """All sides, changed; ``None`` if one cannot be."""
    found: list[str] = []
    for text in programs:
        changed = change(text)
        if changed is None:
            return None
        found.append(changed)
    return tuple(found)


def _shared(programs: Programs) -> list[str]:
    """Values that all sides compute, in the first one's order."""
    first, *others = (contents.values(text) for text in programs)
    return [name for name in first if all(name in other for other in others)]


def _coarse(programs: Programs) -> list[str]:
    shared = _shared(programs)
    places: list[int] = []
    parts = 2
    while parts <= COARSE:
        places += [len(shared) * part // parts for part in range(1, parts, 2)]
        parts *= 2
    return [shared[place] for place in dict.fromkeys(places) if place < len(shared)]


def _ranges(programs: Programs) -> list[str]:
    """Runs of results that could go: halves, quarters and so on."""
    count = contents.outputs_of(programs[0])
    length, found = count // 2, list[str]()
    while length:
        found += [f"{begin}:{min(begin + length, count)}" for begin in range(0, count, length)]
        length //= 2
    return found


def _return_less(programs: Programs, parts: Sequence[str]) -> Programs | None:
    begin, end = map(int, parts[0].split(":"))
    kept = [number for number in range(contents.outputs_of(programs[0])) if not begin <= number < end]
    return _all(programs, lambda text: edit.cut(text, kept=kept)) if kept else None


def _fold(programs: Programs, _: Sequence[str]) -> Programs | None:
    found = tuple(edit.folded(text) or text for text in programs)
    return found if found != programs else None


def _bypass(programs: Programs, parts: Sequence[str]) -> Programs | None:
    return _all(programs, lambda text: edit.bypassed(text, parts))


def _loops(programs: Programs) -> list[str]:
    return [str(number) for number in range(min(contents.loops(text) for text in programs))]


def _unloop(programs: Programs, parts: Sequence[str]) -> Programs | None:
    return _all(programs, lambda text: edit.without_loop(text, int(parts[0])))


def _sizes(programs: Programs) -> list[str]:
    found = sorted({size for text in programs for size in contents.sizes(text)}, reverse=True)
    return [f"{one}:{other}" for one in found for other in dict.fromkeys((one // 8, one // 2)) if other]


def _resize(programs: Programs, parts: Sequence[str]) -> Programs | None:
    one, other = map(int, parts[0].split(":"))
    return _all(programs, lambda text: edit.resized(text, one, other))


def _numbers(programs: Programs) -> list[str]:
    return sorted({number for text in programs for number in contents.numbers(text)}, key=int, reverse=True)


def _renumber(programs: Programs, parts: Sequence[str]) -> Programs | None:
    return _all(programs, lambda text: edit.renumbered(text, parts[0], int(parts[0]) // 2))
