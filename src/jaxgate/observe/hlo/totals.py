"""Sums over a compiled program: loops count as often as they run, of a conditional one branch.

They rest on how often each computation of a module runs in one call of the program.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from jaxgate.observe.hlo.parser import HloText, Instruction, find_holes, without_strings

_EDGE = re.compile(r"(?<![\w-])([a-z_]+)=(?:%([\w.\-]+)|\{(%[^{}]*)\})")
_KNOWN = re.compile(r'"known_trip_count":\{"n":"([0-9]{1,18})"\}')
_INTEGER = re.compile(r"-?[0-9]{1,18}")
Edges = dict[str, list[tuple[str, int | None, bool]]]
"""What each computation calls, how often, and whether as a branch of a conditional."""
_THROUGH = frozenset({"copy", "bitcast"})
"""Operations that hand a number on as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """How often a computation runs."""

    # runs in one call of the program; a loop of unknown length counts once, every branch of a conditional counts as
    # taken
    times: int
    unknown_trips: bool  # whether a loop of unknown length is on the way
    in_branch: bool  # whether a branch of a conditional is on one of the ways


def count_runs(hlo: HloText) -> tuple[Mapping[str, Runs], tuple[str, ...]]:
    """Follow calls from the entry.

    Returns:
        Runs of every computation that is reached; one line for each call whose target is missing or that comes back to
        its caller.
    """
    edges, unread = _edges(hlo)
    reached = _reached(hlo.entry, edges)
    waiting = Counter(target for name in reached for target, _, _ in edges[name])
    times: defaultdict[str, int] = defaultdict(int, {hlo.entry: 1})
    unknown: set[str] = set()
    optional: set[str] = set()
    runs: dict[str, Runs] = {}
    ready = [name for name in reached if not waiting[name]]
    while ready:
        name = ready.pop()
        runs[name] = Runs(times=times[name], unknown_trips=name in unknown, in_branch=name in optional)
        for target, factor, is_branch in edges[name]:
            times[target] += times[name] * (1 if factor is None else factor)
            if factor is None or name in unknown:
                unknown.add(target)
            if is_branch or name in optional:
                optional.add(target)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    unread += [f"%{name} is called by what it calls" for name in reached if name not in runs]
    return runs, tuple(unread)


def _edges(hlo: HloText) -> tuple[Edges, list[str]]:
    edges: Edges = {}
    unread: list[str] = []
    for name, instructions in hlo.computations.items():
        edges[name] = []
        for instruction in instructions.values():
            for target, times in called(instruction, instructions, hlo):
                if target in hlo.computations:
                    edges[name].append((target, times, instruction.opcode == "conditional"))
                else:
                    unread.append(f"{instruction.opcode} %{instruction.name} calls %{target}, which is not there")
    return edges, unread


def _reached(entry: str, edges: Edges) -> dict[str, None]:
    reached: dict[str, None] = {}
    ready = [entry] if entry in edges else []
    while ready:
        name = ready.pop()
        if name not in reached:
            reached[name] = None
            ready += [target for target, _, _ in edges[name]]
    return reached


def called(
    instruction: Instruction, siblings: Mapping[str, Instruction], hlo: HloText
) -> Iterator[tuple[str, int | None]]:
    """The computations that an instruction runs and how often; ``None`` where that is not known."""
    written = instruction.attributes
    if ("=%" not in written and "={%" not in written) or instruction.opcode.endswith(("-done", "-update")):
        return  # an asynchronous call runs where it starts
    found = [(key, one or many) for key, one, many in _EDGE.findall(without_strings(written))]
    trips = _trips(instruction, siblings, dict(found), hlo) if instruction.opcode == "while" else 1
    for key, names in found:
        for name in re.findall(r"[\w.\-]+", names):
            # The condition is asked once more than the body runs.
            yield name, trips + 1 if key == "condition" and trips is not None else trips


def _trips(
    loop: Instruction, siblings: Mapping[str, Instruction], called: Mapping[str, str], hlo: HloText
) -> int | None:
    """The length of a loop: XLA's own figure, or, where it gives none (TPU), read from ``i = 0; i < n; i += 1``."""
    if known := _KNOWN.search(loop.attributes):
        return int(known[1])
    condition = hlo.computations.get(called.get("condition", ""))
    body = hlo.computations.get(called.get("body", ""))
    if not condition or not body:
        return None
    compared, end = _root(condition, "compare"), _root(body, "tuple")
    start = _followed(loop.operands[0], siblings) if loop.operands else None
    if compared is None or end is None or start is None or start.opcode != "tuple" or len(compared.operands) != 2:  # noqa: PLR2004 - left, right
        return None
    counter, limit = _followed(compared.operands[0], condition), _number(compared.operands[1], condition)
    index = _element(counter, condition)
    if index is None or limit is None or not re.search(r"direction=LT\b", compared.attributes):
        return None
    if index >= len(end.operands) or index >= len(start.operands):
        return None
    first, step = _number(start.operands[index], siblings), _step(end.operands[index], index, body)
    return max(limit, 0) if first == 0 and step == 1 else None


def _root(computation: Mapping[str, Instruction], opcode: str) -> Instruction | None:
    return next((i for i in computation.values() if i.root and i.opcode == opcode), None)


def _followed(name: str, computation: Mapping[str, Instruction]) -> Instruction | None:
    """The instruction behind copies."""
    for _ in computation:
        found = computation.get(name)
        if found is None or found.opcode not in _THROUGH or len(found.operands) != 1:
            return found
        name = found.operands[0]
    return None


def _number(name: str, computation: Mapping[str, Instruction]) -> int | None:
    found = _followed(name, computation)
    is_number = found is not None and found.opcode == "constant" and _INTEGER.fullmatch(found.arguments)
    return int(found.arguments) if found and is_number else None


def _element(read: Instruction | None, computation: Mapping[str, Instruction]) -> int | None:
    """Which element of the loop's state an instruction reads."""
    if read is None or read.opcode != "get-tuple-element" or len(read.operands) != 1:
        return None
    state, index = _followed(read.operands[0], computation), re.search(r"\bindex=([0-9]{1,9})\b", read.attributes)
    return int(index[1]) if index and state is not None and state.opcode == "parameter" else None


def _step(name: str, index: int, body: Mapping[str, Instruction]) -> int | None:
    """What the body adds to an element of the loop's state."""
    added = _followed(name, body)
    if added is None or added.opcode != "add" or len(added.operands) != 2:  # noqa: PLR2004 - left, right
        return None
    for one, other in (added.operands, added.operands[::-1]):
        if _element(_followed(one, body), body) == index:
            return _number(other, body)
    return None


_ENDLESS = "a loop of unknown length counts once"
_BRANCHES = "of a conditional the cheapest branch counts"
CONTROL = frozenset({"async-start", "call", "conditional", "while"})
"""Operations whose computations run one operation after the other, as the program does."""

VIEWS = frozenset({"bitcast", "get-tuple-element", "tuple"})
FREE = (
    VIEWS
    | CONTROL
    | frozenset(
        {"add-dependency", "after-all", "constant", "domain", "opt-barrier", "parameter", "partition-id", "replica-id"}
    )
)
"""Operations that take no time of their own."""

Siblings = Mapping[str, Instruction]


def computation_of(fusion: Instruction, hlo: HloText) -> Siblings:
    """The computation that a fusion runs; empty if it is not there."""
    _, _, rest = fusion.attributes.partition("calls=%")
    name = rest.split(",")[0].split(" ")[0].split("}")[0]
    return hlo.computations.get(name, {})


@dataclass(slots=True)
class Amounts:
    """What some operations ask for."""

    counts: Counter[str] = field(default_factory=Counter)  # by name
    more: dict[str, None] = field(default_factory=dict)  # why it may be more; empty if it is all

    def add(self, other: Amounts, times: int = 1) -> None:
        """Add what is asked for ``times`` times."""
        for name, count in other.counts.items():
            self.counts[name] += count * times
        self.more.update(other.more)


def why_unread(hlo: HloText) -> str:
    """Why nothing can be added up over a program; empty if all of it was understood."""
    _, broken = count_runs(hlo)
    holes = (*hlo.unread, *broken, *find_holes(hlo), *(() if hlo.entry else ("it has no entry",)))
    return f"the optimised program has what is not understood: {holes[0]}" if holes else ""


Own = Callable[[Instruction, Siblings], Amounts]


def add_up(hlo: HloText, own: Own, enters: Collection[str], *, dearest: bool = False) -> Amounts:
    """Add up what all operations of one call of a program ask for.

    ``own`` is what one operation asks for, without the computations that it runs. The dearest branch of a conditional
    counts if the sum is to be the most that a call may take (``dearest``), else the cheapest.
    """
    unread = why_unread(hlo)
    if unread:
        return Amounts(more={unread: None})
    return _Sums(hlo, own, enters, dearest=dearest).of(hlo.entry)


class _Sums:
    """Sums of computations, each made once."""

    def __init__(self, hlo: HloText, own: Own, enters: Collection[str], *, dearest: bool) -> None:
        self._hlo = hlo
        self._choose = max if dearest else min
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
            chosen = self._choose(branches, key=lambda amounts: amounts.counts.total(), default=Amounts())
            total.add(chosen)
            if any(amounts.counts != chosen.counts for amounts in branches):
                total.more[_BRANCHES] = None
            for amounts in branches:
                total.more.update(amounts.more)
            return
        for amounts, times in inner:
            total.add(amounts, 1 if times is None else times)
            if times is None and amounts.counts:
                total.more[_ENDLESS] = None
