"""Facts over time: exact values of one folder, compared as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

from jaxgate.judge.difference import environment_differences
from jaxgate.model import FactDrift, FactPolicy, HistoryPoint, Status, Step


def comparable(points: Iterable[HistoryPoint]) -> tuple[HistoryPoint, ...]:
    """The runs whose facts are those of the stored baselines' world: no imports, and nothing that could not be measured."""
    return tuple(
        point
        for point in points
        if point.source == "jaxgate" and not point.elsewhere and point.status != Status.INVALID
    )


def fact_drift(points: Sequence[HistoryPoint], policy: FactPolicy) -> FactDrift | None:
    """What became of a fact since the first run that did not fail; ``None`` where today's or every earlier one lacks it.

    Of a fact that is compared within some versions only, the runs with today's versions count.

    Args:
        points: Comparable runs, oldest first; the last is today's.
        policy: The fact's.
    """
    if not points or policy.name not in points[-1].figures:
        return None
    today = points[-1]
    known = [
        point
        for point in points
        if policy.name in point.figures
        and not policy.other_within(today.environment, point.environment)
        and (point is today or not point.fails)
    ]
    first, values = known[0], [point.figures[policy.name] for point in known]
    if first is today:
        return None
    return FactDrift(
        name=policy.name,
        first=values[0],
        now=values[-1],
        since=first.moment[:10],
        steps=sum(before != after for before, after in pairwise(values)),
        environment=environment_differences(today.environment, first.environment) if first.environment else (),
    )


def fact_steps(points: Sequence[HistoryPoint], name: str) -> tuple[Step, ...]:
    """Every move of an exact value: no search is needed for these."""
    known = [point for point in comparable(points) if name in point.figures]
    places = [place for place in range(1, len(known)) if known[place].figures[name] != known[place - 1].figures[name]]
    return tuple(
        Step(
            quantity=name,
            ratio=_ratio(known[place - 1].figures[name], known[place].figures[name]),
            before=known[place - 1].figures[name],
            after=known[place].figures[name],
            run=known[place].run,
            moment=known[place].moment,
            commit=known[place].commit,
            last_before=known[place - 1].commit,
            runs=end - place,
            sure=inf,
        )
        for place, end in pairwise((*places, len(known)))
    )


def _ratio(before: float, after: float) -> float:
    return after / before if before else inf
