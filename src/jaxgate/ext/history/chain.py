"""The chain of time: ratios of duels, multiplied over the refreshes of a baseline; and facts over time, as they stand.

A duel says what today's program takes as a multiple of its baseline's, on one machine at one time. When the baseline is
refreshed, the accepted ratio is the link from the old one to the new one. The product of the links and of today's
ratio compares today with the first baseline, although no stored time is compared with another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, hypot, inf, log

from jaxgate.ext.history.drift import Accepted, Drift, FactDrift, Step
from jaxgate.ext.history.model import HistoryPoint
from jaxgate.judge.difference import environment_differences
from jaxgate.model.decision import Status
from jaxgate.model.policy import FactPolicy
from jaxgate.model.verdict import BaselineName


def comparable(points: Iterable[HistoryPoint]) -> tuple[HistoryPoint, ...]:
    """The runs whose facts are those of the stored baselines' world: no imports, and nothing that could not be measured."""
    return tuple(
        point
        for point in points
        if point.source == "jaxgate" and not point.elsewhere and point.status != Status.INVALID
    )


def fact_drift(points: Sequence[HistoryPoint], policy: FactPolicy) -> FactDrift | None:
    """What became of a fact since the first run that did not fail; ``None`` where today's or every earlier one lacks it.

    Runs are comparable, oldest first; the last is today's. Of a fact that is compared within some versions only, the runs
    with today's versions count.
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
        )
        for place, end in pairwise((*places, len(known)))
    )


def _ratio(before: float, after: float) -> float:
    return after / before if before else inf


LEVEL = 2.21
"""Normal quantile of a duel's bounds after 60 pairs (level 0.0137); after 20 pairs theirs is 3.0, so that the error taken
from them is too large rather than too small."""

COMPILES = 0.005
"""What two compiles of one program differ by, which the interval of one duel cannot know: the most of 51 duels of
identical programs was 0.7 to 3.4 % in docs/timing.md, so a standard deviation of 0.3 to 1.4 %; 0.54 % in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPoint:
    """One run whose time is known relative to the first baseline."""

    point: HistoryPoint  # what was stored of it
    value: float  # logarithm of its time as a multiple of the first
    error: float = 0.0  # standard error of its own ratio; 0 where the program is its baseline's
    links: tuple[float, ...] = ()  # standard errors of the links between the run before it and this one
    follows_link: bool = False  # whether the run before it is the only link, so that its program is this one's baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A baseline's place in the chain."""

    value: float = 0.0  # logarithm of its time as a multiple of the first baseline's
    links: tuple[Accepted, ...] = ()  # the refreshes that led to it from there


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The part of a history that is known relative to one baseline."""

    points: tuple[ChainPoint, ...]  # the runs whose time is known, oldest first
    since: str  # UTC date of the first baseline
    anchor: Anchor  # place of the newest point's baseline
    newest: HistoryPoint  # the newest point that is part of a chain; it may have no ratio
    gap: str = ""  # why nothing is known from before `since`; empty where the history begins there


def chain_times(points: Iterable[HistoryPoint]) -> Chain | None:
    """Multiply the ratios of a case's runs, oldest first; ``None`` where no run speaks of stored baselines.

    Runs against something else and imported ones are no links. A baseline whose ratio to the others nobody measured
    begins a new chain.
    """
    walk: _Walk | None = None
    newest: HistoryPoint | None = None
    for point in comparable(points):
        baseline = point.baseline
        if baseline is None and not point.recorded:
            continue  # never recorded: nothing to relate it to
        newest = point
        if baseline is None:
            if walk is None:
                walk = _Walk(_recorded(point))
                walk.points.append(ChainPoint(point=point, value=0.0))
            continue
        if walk is None:
            walk = _Walk(baseline)
        elif not walk.follow(baseline):
            gap = f"no duel holds the baseline of {_named(baseline)} against that of {_named(walk.baseline)}"
            walk = _Walk(baseline, gap)
        walk.add(point)
    if walk is None or newest is None:
        return None
    anchor = walk.anchors[walk.baseline]
    return Chain(points=tuple(walk.points), since=walk.since, anchor=anchor, newest=newest, gap=walk.gap)


def drift_of(chain: Chain) -> Drift:
    """The newest run of a chain relative to its first baseline; that of its baseline where its own time is not known."""
    last = chain.points[-1] if chain.points else None
    is_todays = last is not None and last.point is chain.newest
    value = last.value if last is not None and is_todays else chain.anchor.value
    own = last.error if last is not None and is_todays else 0.0
    width = LEVEL * hypot(own, *(link.error for link in chain.anchor.links))  # those of independent duels add up
    return Drift(
        ratio=exp(value),
        low=exp(value - width),
        high=exp(value + width),
        since=chain.since,
        accepted=chain.anchor.links,
        commit=chain.newest.commit,
        until_baseline=not is_todays,
        gap=chain.gap,
    )


def own_ratio(point: HistoryPoint) -> tuple[float, float] | None:
    """Logarithm of a run's ratio to its baseline, and its standard error; ``None`` where nobody knows it."""
    if point.ratio is None:
        same = point.time_status == Status.SAME and point.baseline is not None
        return (0.0, 0.0) if same or _is_unchanged(point) else None
    if point.ratio <= 0:
        return None
    bounds = (point.low, point.high)
    if not all(bound is not None and bound > 0 for bound in bounds):
        return None  # a ratio of unknown error would pass for an exact one
    low, high = (log(bound) for bound in bounds if bound is not None)
    return log(point.ratio), hypot((high - low) / (2 * LEVEL), COMPILES)


def _is_unchanged(point: HistoryPoint) -> bool:
    """Whether a refresh put the same program in the place of its baseline's; recording runs may ask no clock."""
    return bool(point.recorded and point.baseline and point.program and point.program == point.baseline.program)


class _Walk:
    """One chain, from its first baseline on: the place of each baseline that was met, and the runs."""

    def __init__(self, first: BaselineName, gap: str = "") -> None:
        self.since, self.gap = first.date, gap
        self.baseline = first  # of the newest run
        self.anchors = {first: Anchor()}
        self.points: list[ChainPoint] = []
        self._seen: list[HistoryPoint] = []
        self._linking: dict[BaselineName, HistoryPoint] = {}

    def follow(self, baseline: BaselineName) -> bool:
        """Find the place of the next run's baseline; tells whether anybody measured it."""
        if baseline not in self.anchors:  # else branches of one project take turns in a history
            before, link = self.anchors[self.baseline], self._link(baseline, self.baseline)
            same = bool(baseline.program) and baseline.program == self.baseline.program
            if same and (link is None or not link.error):  # recorded again: no refresh that anybody measured
                self.anchors[baseline] = before
            elif link is None:
                return False
            else:
                self.anchors[baseline] = Anchor(value=before.value + log(link.ratio), links=(*before.links, link))
        self.baseline = baseline
        return True

    def add(self, point: HistoryPoint) -> None:
        """Take a run against the baseline that was followed."""
        found = own_ratio(point)
        if found is not None:
            anchor = self.anchors[self.baseline]
            before = self.points[-1].point if self.points else None
            links = () if before is None else self._between(before.baseline, anchor)
            follows = before is not None and len(links) == 1 and self._linking.get(self.baseline) is before
            value, error = found
            self.points.append(
                ChainPoint(point=point, value=anchor.value + value, error=error, links=links, follows_link=follows)
            )
        self._seen.append(point)

    def _link(self, new: BaselineName, old: BaselineName) -> Accepted | None:
        """The ratio that was accepted when one baseline took another's place.

        The refreshed run itself, if it has one; else the last run before it with that program; never a guess: of programs
        without a fingerprint nobody knows whether they are the same.
        """
        for point in reversed(self._seen if new.program else ()):
            if point.baseline == old and point.program == new.program and (found := own_ratio(point)) is not None:
                self._linking[new] = point
                within = point.time_status not in (Status.SLOWER, Status.WAIVED)
                return Accepted(ratio=exp(found[0]), error=found[1], date=new.date, commit=new.commit, within=within)
        return None

    def _between(self, before: BaselineName | None, anchor: Anchor) -> tuple[float, ...]:
        """Errors of the links by which two runs differ."""
        ours = anchor.links
        theirs: Sequence[Accepted] = () if before is None else self.anchors[before].links
        shared = 0
        while shared < min(len(ours), len(theirs)) and ours[shared] is theirs[shared]:
            shared += 1
        return tuple(link.error for link in (*ours[shared:], *theirs[shared:]))


def _recorded(point: HistoryPoint) -> BaselineName:
    """The baseline that a run created."""
    return BaselineName(program=point.program, folder=point.folder, commit=point.commit, date=point.moment[:10])


def _named(baseline: BaselineName) -> str:
    return f"{baseline.date} ({baseline.commit[:10]})" if baseline.commit else baseline.date
