"""Sums over a compiled program: loops count as often as they run, of a conditional one branch.

They rest on how often each computation of a module runs in one call of the program.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from graphlib import CycleError, TopologicalSorter

from jaxgate.observe.hlo.parser import HloText, Instruction, find_holes, without_strings

_EDGE = re.compile(r"(?<![\w-])([a-z_]+)=(?:%([\w.\-]+)|\{(%[^{}]*)\})")
_KNOWN = re.compile(r'"known_trip_count":\{"n":"([0-9]{1,18})"\}')
_TEST = re.compile(r"compare\(state\[([0-9]{1,9})\], (-?[0-9]{1,18})\)")

CONTROL = frozenset({"async-start", "call", "conditional", "while"})
"""Operations whose computations run one operation after the other, as the program does."""
VIEWS = frozenset({"bitcast", "get-tuple-element", "tuple"})
_MARKS = frozenset(
    {"add-dependency", "after-all", "constant", "domain", "opt-barrier", "parameter", "partition-id", "replica-id"}
)
FREE = VIEWS | CONTROL | _MARKS
"""Operations that take no time of their own."""

Siblings = Mapping[str, Instruction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """How often a computation runs."""

    # runs in one call of the program; a loop of unknown length counts once, every branch of a conditional counts as
    # taken
    times: int = 0
    unknown_trips: bool = False  # whether a loop of unknown length is on the way
    in_branch: bool = False  # whether a branch of a conditional is on one of the ways


def count_runs(hlo: HloText) -> tuple[Mapping[str, Runs], tuple[str, ...]]:
    """Follow calls from the entry.

    Returns:
        Runs of every computation that is reached; one line for each call whose target is missing or that comes back to
        its caller.
    """
    calls: dict[str, list[tuple[str, int | None, bool]]] = {name: [] for name in hlo.computations}
    unread: list[str] = []
    for name, siblings in hlo.computations.items():
        for instruction in siblings.values():
            for target, times in called(instruction, siblings, hlo):
                if target in calls:
                    calls[name].append((target, times, instruction.opcode == "conditional"))
                else:
                    unread.append(f"{instruction.opcode} %{instruction.name} calls %{target}, which is not there")
    try:
        order = [*TopologicalSorter({name: [to for to, _, _ in made] for name, made in calls.items()}).static_order()]
    except CycleError as error:
        return {}, (*unread, f"%{error.args[1][0]} is called by what it calls")
    runs = {hlo.entry: Runs(times=1)}
    for name in reversed(order):  # callers first
        if (here := runs.get(name)) is None:
            continue
        for target, times, is_branch in calls[name]:
            before = runs.get(target, Runs())
            runs[target] = Runs(
                times=before.times + here.times * (1 if times is None else times),
                unknown_trips=before.unknown_trips or here.unknown_trips or times is None,
                in_branch=before.in_branch or here.in_branch or is_branch,
            )
    return runs, tuple(unread)


def called(instruction: Instruction, siblings: Siblings, hlo: HloText) -> Iterator[tuple[str, int | None]]:
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


def _trips(loop: Instruction, siblings: Siblings, called: Mapping[str, str], hlo: HloText) -> int | None:
    """The length of a loop: XLA's own figure, or, where it gives none (TPU), read from ``i = 0; i < n; i += 1``."""
    if known := _KNOWN.search(loop.attributes):
        return int(known[1])
    condition, body = (hlo.computations.get(called.get(part, ""), {}) for part in ("condition", "body"))
    test, end = root_of(condition), root_of(body)
    start = _behind_copies(loop.operands[0], siblings) if loop.operands else None
    if test is None or end is None or start is None or not (start.opcode == end.opcode == "tuple"):
        return None
    limited = _TEST.fullmatch(_formula(test.name, condition))
    if limited is None or not re.search(r"direction=LT\b", test.attributes):
        return None
    place, limit = int(limited[1]), int(limited[2])
    if place >= min(len(start.operands), len(end.operands)) or _formula(start.operands[place], siblings) != "0":
        return None
    counts = _formula(end.operands[place], body) in (f"add(state[{place}], 1)", f"add(1, state[{place}])")
    return max(limit, 0) if counts else None


def _formula(name: str, computation: Siblings, depth: int = 3) -> str:
    """How a number is made of the loop's state, ``add(state[0], 1)``; ``?`` stands for what goes deeper."""
    made = _behind_copies(name, computation)
    if made is None or not depth:
        return "?"
    if made.opcode == "constant":
        return made.arguments
    if made.opcode == "parameter":
        return "state"
    operands = ", ".join(_formula(operand, computation, depth - 1) for operand in made.operands)
    index = re.search(r"\bindex=([0-9]{1,9})\b", made.attributes) if made.opcode == "get-tuple-element" else None
    return f"{operands}[{index[1]}]" if index else f"{made.opcode}({operands})"


def _behind_copies(name: str, computation: Siblings) -> Instruction | None:
    for _ in computation:
        found = computation.get(name)
        if found is None or found.opcode not in ("copy", "bitcast") or len(found.operands) != 1:
            return found
        name = found.operands[0]
    return None


def root_of(computation: Siblings) -> Instruction | None:
    """The instruction that is the result of a computation."""
    return next((instruction for instruction in computation.values() if instruction.root), None)


def computation_of(fusion: Instruction, hlo: HloText) -> Siblings:
    """The computation that a fusion runs; empty if it is not there."""
    found = re.search(r"calls=%([^, }]*)", fusion.attributes)
    return hlo.computations.get(found[1], {}) if found else {}


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


def add_up(
    hlo: HloText, own: Callable[[Instruction, Siblings], Amounts], enters: Collection[str], *, dearest: bool = False
) -> Amounts:
    """Add up what all operations of one call of a program ask for.

    ``own`` is what one operation asks for, without the computations that it runs. The dearest branch of a conditional
    counts if the sum is to be the most that a call may take (``dearest``), else the cheapest.
    """
    if unread := why_unread(hlo):
        return Amounts(more={unread: None})
    choose = max if dearest else min

    @cache
    def of_computation(name: str) -> Amounts:
        total, siblings = Amounts(), hlo.computations[name]
        for instruction in siblings.values():
            total.add(own(instruction, siblings))
            if instruction.opcode in enters:
                inner = [(of_computation(name), times) for name, times in called(instruction, siblings, hlo)]
                total.add(_one_of(inner, choose) if instruction.opcode == "conditional" else _all_of(inner))
        return total

    return of_computation(hlo.entry)


def _all_of(inner: Sequence[tuple[Amounts, int | None]]) -> Amounts:
    total = Amounts()
    for amounts, times in inner:
        total.add(amounts, 1 if times is None else times)
        if times is None and amounts.counts:
            total.more["a loop of unknown length counts once"] = None
    return total


def _one_of(branches: Sequence[tuple[Amounts, int | None]], choose: Callable[..., Amounts]) -> Amounts:
    every = [amounts for amounts, _ in branches]
    chosen = choose(every, key=lambda amounts: amounts.counts.total(), default=Amounts())
    total = Amounts(chosen.counts, dict(chosen.more))
    if any(amounts.counts != chosen.counts for amounts in every):
        total.more["of a conditional the cheapest branch counts"] = None
    for amounts in every:
        total.more.update(amounts.more)
    return total
