"""Sums over a compiled program: loops count as often as they run, of a conditional the cheapest branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from jaxgate.observe.hlo.parser import HloText, Instruction, find_holes
from jaxgate.observe.hlo.trip_counts import called, count_runs

_ENDLESS = "a loop of unknown length counts once"
_BRANCHES = "of a conditional the cheapest branch counts"
CONTROL = frozenset({"async-start", "call", "conditional", "while"})
"""Operations whose computations run one operation after the other, as those of the program do."""

Siblings = Mapping[str, Instruction]


@dataclass(slots=True)
class Amounts:
    """What some operations ask for.

    Attributes:
        counts: By name.
        more: Why it may be more; empty if it is all.
    """

    counts: Counter[str] = field(default_factory=Counter)
    more: dict[str, None] = field(default_factory=dict)

    def add(self, other: Amounts, times: int = 1) -> None:
        """Add what is asked for so often."""
        for name, count in other.counts.items():
            self.counts[name] += count * times
        self.more.update(other.more)


def add_up(hlo: HloText, own: Callable[[Instruction, Siblings], Amounts], enters: Collection[str]) -> Amounts:
    """Add up what all operations of one call of a program ask for.

    Args:
        hlo: The program.
        own: What one operation asks for, without the computations that it runs.
        enters: Operations whose computations count.
    """
    _, broken = count_runs(hlo)
    holes = (*hlo.unread, *broken, *find_holes(hlo), *(() if hlo.entry else ("it has no entry",)))
    if holes:
        return Amounts(more={f"the optimised program has what is not understood: {holes[0]}": None})
    return _Sums(hlo, own, enters).of(hlo.entry)


class _Sums:
    """Sums of computations, each made once."""

    def __init__(self, hlo: HloText, own: Callable[[Instruction, Siblings], Amounts], enters: Collection[str]) -> None:
        self._hlo = hlo
        self._own = own
        self._enters = enters
        self._known: dict[str, Amounts] = {}

    def of(self, name: str) -> Amounts:
        """The sum of one computation and all that it runs."""
        if name not in self._known:
            total = Amounts()
            siblings = self._hlo.computations[name]
            for instruction in siblings.values():
                total.add(self._own(instruction, siblings))
                if instruction.opcode in self._enters:
                    self._enter(instruction, siblings, total)
            self._known[name] = total
        return self._known[name]

    def _enter(self, instruction: Instruction, siblings: Siblings, total: Amounts) -> None:
        inner = [(self.of(name), times) for name, times in called(instruction, siblings, self._hlo)]
        if instruction.opcode == "conditional":
            branches = [amounts for amounts, _ in inner]
            cheapest = min(branches, key=lambda amounts: amounts.counts.total(), default=Amounts())
            total.add(cheapest)
            if any(amounts.counts != cheapest.counts for amounts in branches):
                total.more[_BRANCHES] = None
            for amounts in branches:
                total.more.update(amounts.more)
            return
        for amounts, times in inner:
            total.add(amounts, 1 if times is None else times)
            if times is None and amounts.counts:
                total.more[_ENDLESS] = None
