"""Holds two sides against each other: which facts differ, and which way. Times are shown and not judged."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from jaxgate.ext.diff.model import CaseDiff, DiffSide, QuantityDiff, RunDiff, Way
from jaxgate.ext.history.model import HistoryPoint
from jaxgate.judge.figures import SUMS
from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model.numbers import FACT_NAMES

_POLICIES = {policy.name: policy for policy in (*POLICIES, *ARRIVAL_POLICIES)}
_FACTS = FACT_NAMES | set(SUMS)
_ORDER = tuple(Way)


def diff_sides(first: DiffSide, second: DiffSide) -> RunDiff:
    """Compare all cases that both sides have.

    A fact is worse or better by the policy of the gate, where hardware and release line are the same; elsewhere a difference
    is a difference.
    """
    cases: list[CaseDiff] = []
    only_first: list[str] = []
    only_second: list[str] = []
    for name in [*first.cases, *(name for name in second.cases if name not in first.cases)]:
        ours, theirs = first.cases.get(name, ()), second.cases.get(name, ())
        several = max(len(ours), len(theirs)) > 1
        pairs = _pairs(ours, theirs)
        cases += [_diff(f"{name} on {left.folder}" if several else name, left, right) for left, right in pairs]
        for lone, side, paired in (
            (only_first, ours, [pair[0].folder for pair in pairs]),
            (only_second, theirs, [pair[1].folder for pair in pairs]),
        ):
            lone += [f"{name} on {one.folder}" if several else name for one in side if one.folder not in paired]
    return RunDiff(
        first=first,
        second=second,
        cases=tuple(sorted(cases, key=lambda case: (_ORDER.index(case.way), -_largest(case), case.case))),
        only_first=tuple(only_first),
        only_second=tuple(only_second),
    )


def _pairs(first: Sequence[HistoryPoint], second: Sequence[HistoryPoint]) -> list[tuple[HistoryPoint, HistoryPoint]]:
    """Pair the only case of each side, whatever its hardware; else cases on the same hardware."""
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    there = {one.folder: one for one in second}
    return [(one, there[one.folder]) for one in first if one.folder in there]


def _diff(name: str, first: HistoryPoint, second: HistoryPoint) -> CaseDiff:
    both = [
        QuantityDiff(name=quantity, first=value, second=second.figures[quantity], way=_way(quantity, first, second))
        for quantity, value in first.figures.items()
        if quantity in second.figures
    ]
    facts = [one for one in both if one.name in _FACTS and one.way is not Way.SAME]
    times = [one for one in both if one.name not in _FACTS]
    unknown = {quantity: "first" for quantity in first.figures if quantity in _FACTS - second.figures.keys()}
    unknown |= {quantity: "second" for quantity in second.figures if quantity in _FACTS - first.figures.keys()}
    known = first.program and second.program
    return CaseDiff(
        case=name,
        first=first,
        second=second,
        comparable=_is_comparable(first, second),
        same_program=first.program == second.program if known else None,
        facts=tuple(sorted(facts, key=lambda fact: (_ORDER.index(fact.way), -_size(fact), fact.name))),
        times=tuple(times),
        unknown=unknown,
    )


def _is_comparable(first: HistoryPoint, second: HistoryPoint) -> bool:
    return bool(first.folder) and first.folder == second.folder


def _way(quantity: str, first: HistoryPoint, second: HistoryPoint) -> Way:
    before, now, policy = first.figures[quantity], second.figures[quantity], _POLICIES.get(quantity)
    if before == now:
        return Way.SAME
    if (
        policy is None
        or not _is_comparable(first, second)
        or policy.other_within(second.environment, first.environment)
    ):
        return Way.MOVED
    if policy.is_worse(int(now), int(before)):
        return Way.WORSE
    return Way.BETTER if policy.is_better(int(now), int(before)) else Way.MOVED


def _size(one: QuantityDiff) -> float:
    """How far apart both sides are; 0 counts as one unit, as a few bytes are no infinite growth."""
    return abs(log(max(one.second, 1) / max(one.first, 1)))


def _largest(case: CaseDiff) -> float:
    return max((_size(fact) for fact in case.facts if fact.way is case.way), default=0.0)
