"""Delta debugging: the smallest thing that still shows what a larger one shows. Knows nothing of programs.

After Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (IEEE TSE 28, 2002): parts are taken
away in chunks that halve, and what still shows it is gone on with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field

Thing = tuple[str, ...]
"""What becomes smaller: a few texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One way to make something smaller."""

    name: str  # what it does, for people
    parts: Callable[[Thing], Sequence[str]]  # what it could take away, by names that stay the same while other parts go
    without: Callable[[Thing, Sequence[str]], Thing | None]  # the thing without some parts; `None` where that is none
    # whether only one part may be taken at a time, in the order of `parts`: the first that works counts
    one_by_one: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A smaller thing that was found, and is sure to show it."""

    found: Thing  # the thing
    move: str  # what made it smaller
    tries: int  # how many were asked for so far, in all


@dataclass
class Reduction:
    """Makes a thing smaller until no move helps any more."""

    moves: Sequence[Move]  # ways to make it smaller, the boldest first
    _: KW_ONLY
    shows: Callable[[Thing], bool]  # whether a thing still shows it
    size: Callable[[Thing], tuple[int, ...]]  # what shall become small; what is not smaller is not gone on with
    over: Callable[[], bool] = lambda: False  # whether time is up
    tries: int = field(default=0, init=False)
    _refused: set[Thing] = field(default_factory=set, init=False)

    def steps(self, start: Thing) -> Iterator[Step]:
        """Everything smaller that was found, each smaller than the one before; the last one is the smallest."""
        best = start
        while not self.over():
            before = best
            for move in self.moves:
                for found in self._one_by_one(move, best) if move.one_by_one else self._in_chunks(move, best):
                    best = found
                    yield Step(found=best, move=move.name, tries=self.tries)
            if self.size(best) >= self.size(before):
                return

    def _one_by_one(self, move: Move, best: Thing) -> Iterator[Thing]:
        """Take the first part that can be taken, and ask again what parts there are."""
        while True:
            found = next((one for part in move.parts(best) if (one := self._try(move, best, [part])) is not None), None)
            if found is None:
                return
            best = found
            yield best

    def _in_chunks(self, move: Move, best: Thing) -> Iterator[Thing]:
        parts = list(move.parts(best))
        length = (len(parts) + 1) // 2
        while length >= 1:
            begin = 0
            while begin < len(parts):
                chunk = parts[begin : begin + length]
                found = self._try(move, best, chunk)
                if found is None:
                    begin += length
                    continue
                best = found
                left = set(move.parts(best))
                parts = [part for part in parts if part in left and part not in chunk]
                begin = min(begin, len(parts))
                yield best
            length = min(length // 2, max(len(parts), 1))

    def _try(self, move: Move, best: Thing, parts: Sequence[str]) -> Thing | None:
        """The thing without some parts, if it is smaller and shows it."""
        if self.over():
            return None
        found = move.without(best, parts)
        if found is None or found in self._refused or self.size(found) >= self.size(best):
            return None
        self.tries += 1
        if self.shows(found):
            return found
        self._refused.add(found)
        return None
