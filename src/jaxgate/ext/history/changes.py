"""Steps and creep in the history of one quantity: a change-point search proposes, a test with the chain's errors decides.

The search (least squares with a penalty; Killick, Fearnhead and Eckley 2012, PELT) knows nothing of links: it would
call the error of one accepted refresh a step. So each boundary that it proposes is tested between the levels on both
sides, which are estimated with the errors of runs and links; and a creep, which it makes stairs of, is a straight line
that fits better than they do.

Levels come out of the filter of the local-level model (Durbin and Koopman, Time Series Analysis by State Space Methods, 2). Its
innovations are independent, so that their squares add up to a misfit, and a regression on them is generalised least squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import exp, inf, log, sqrt
from statistics import median

from jaxgate.ext.history.chain import (
    COMPILES,
    LEVEL,
    ChainPoint,
    chain_times,
    comparable,
    drift_of,
    fact_drift,
    fact_steps,
)
from jaxgate.ext.history.drift import CaseChanges, Creep, Step
from jaxgate.ext.history.model import HistoryPoint
from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model.numbers import Phases
from jaxgate.model.waiver import TIME


class Level:
    """A level that moves where links lie, with a slope, estimated run by run, and how well both fit."""

    def __init__(self) -> None:
        self.mean, self.variance = 0.0, inf  # before the first run nothing is known
        self.misfit = 0.0  # sum of squared innovations without a slope; with one it is less by the square of `sure`
        self._run = self._products = self._squares = 0.0

    def loosen(self, variance: float) -> None:
        """Let the level move by a link of that variance."""
        self.variance += variance

    def observe(self, value: float, own: float, run: float = 0.0) -> None:
        """Take one more observation, with its variance and at which run it is."""
        if self.variance == inf:
            self.mean, self.variance, self._run = value, own, run
            return
        moved, away, total = value - self.mean, run - self._run, self.variance + own
        self.misfit += moved * moved / total
        self._products += moved * away / total
        self._squares += away * away / total
        share = self.variance / total
        self.mean, self._run, self.variance = self.mean + moved * share, self._run + away * share, own * share

    @property
    def slope(self) -> float:
        """The slope per run."""
        return self._products / self._squares if self._squares else 0.0

    @property
    def sure(self) -> float:
        """How many standard errors the slope is."""
        return abs(self._products) / sqrt(self._squares) if self._squares else 0.0

    def apart(self, after: Level) -> tuple[float, float]:
        """How far a later level is from this one, and how many standard errors that is."""
        move = after.mean - self.mean
        return move, abs(move) / sqrt(self.variance + after.variance) if move else 0.0


SURE = 5.0
"""Standard errors that a move must have. A history of 200 runs, looked at after each of them, has 200 × 200 / 2 pairs
of a last run and a boundary; the chance that any of them is beyond 5, either way, is at most 20,000 × 5.7e-7 = 1.1 %."""
LEAST_RUNS = 3
"""Of a level: with fewer, one odd run would be one."""
LEAST_HISTORY = 20
"""Runs before anything is said: with ten, the noise of a case is not known, and two of 100 noisy histories alarmed."""
LEAST_KNOWN = 10
"""Moves that say how noisy a case is, and runs that make a line."""
LEAST_MOVE = log(1.01)
"""Less than 1 % is real at times, and nobody looks for its cause."""
TYPICAL_NOISE = 0.006
"""Standard deviation of a duel's ratio from one run to the next, of identical work: by docs/timing.md the slow-down that
is seen 9 times in 10 is 5.2 % in the middle of its cases, (ln 1.052 - ln 1.03) / 1.58 / 2.21 = 0.6 %, and the worst of
51 duels was 1.3 % off, 2.5 standard deviations of 0.54 %. No history is taken to be quieter."""
MOST_OF_IT = 2 / 3
"""Share of a rise that one boundary must hold for it to be a step rather than creep."""
_EXACT = 1e-12
"""Variance of what needs no clock: not zero, which a filter divides by."""
_NORMAL_MAD = 1.4826
_NEAR = 2
"""Neighbours on either side that say whether a run is odd."""
_ODD = 3.0

Segment = tuple[int, int]
"""First run of a level, and the first after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """What moved."""

    steps: tuple[Step, ...] = ()  # oldest first
    creep: Creep | None = None  # what goes on until the newest run, if that is no step


def find_shifts(series: Sequence[ChainPoint], quantity: str, *, least_noise: float = TYPICAL_NOISE) -> Shifts:
    """Look in runs, oldest first, for steps, and for creep that goes on until the newest run.

    ``least_noise`` is the standard deviation below which no history is taken to be.
    """
    if len(series) < LEAST_HISTORY:
        return Shifts()
    noise = max(least_noise, noise_of(series))
    values = _without_odd_runs([one.value for one in series], noise)
    ends = split([value / noise for value in values], SURE**2, LEAST_RUNS)
    segments = list(zip([0, *ends[:-1]], ends, strict=True))
    return _Work(series, values, noise).shifts(quantity, segments)


def noise_of(series: Sequence[ChainPoint]) -> float:
    """Standard deviation of a run, from moves between neighbours; 0 where too few are known.

    The median of the moves does not see steps, and creep adds a seventh of a per cent to each. Where few moves are
    known theirs may be small by chance: two standard errors of the estimate are added.
    """
    moves = [
        abs(after.value - before.value)
        for before, after in pairwise(series)
        if before.error and after.error and not after.links
    ]
    if len(moves) < LEAST_KNOWN:
        return 0.0
    return _NORMAL_MAD * median(moves) / sqrt(2) * (1 + 2 / sqrt(len(moves)))


def _without_odd_runs(values: Sequence[float], noise: float) -> list[float]:
    """Bring each run to within three standard deviations of the median of its neighbours (Hampel's filter).

    Three runs on a new level are the median of theirs, one odd run is not.
    """
    kept = []
    for place, value in enumerate(values):
        middle = median(values[max(0, place - _NEAR) : place + _NEAR + 1])
        kept.append(min(max(value, middle - _ODD * noise), middle + _ODD * noise))
    return kept


class _Work:
    """The runs of one quantity, with what their errors are."""

    def __init__(self, series: Sequence[ChainPoint], values: Sequence[float], noise: float) -> None:
        self._series = series
        self._values = values
        self._variances = [max(one.error, noise) ** 2 if one.error else _EXACT for one in series]
        self._jumps = [sum(max(error, noise) ** 2 for error in one.links) for one in series]
        self._noise = noise

    def shifts(self, quantity: str, segments: Sequence[Segment]) -> Shifts:
        """Steps, and creep; the stairs by which levels follow a creep are no steps."""
        moved = list(self._moved(segments))
        creep, first = self._creep(quantity, segments, moved)
        steps = tuple(self._step(quantity, *pair) for pair in moved if creep is None or pair[1][0] <= first)
        return Shifts(steps=steps, creep=creep)

    def _moved(self, segments: Sequence[Segment]) -> Iterator[tuple[Segment, Segment]]:
        """Neighbouring levels that differ for sure."""
        for left, right in pairwise(segments):
            before, after, first = self._before(left), self._after(right), self._values[right[0]]
            move, sure = before.apart(after)
            # Two odd runs at the end need a third, and the search takes the one before them.
            begins = abs(first - after.mean) <= abs(first - before.mean)
            if sure >= SURE and abs(move) >= LEAST_MOVE and begins:
                yield left, right

    def _step(self, quantity: str, left: Segment, right: Segment) -> Step:
        """The move between two neighbouring levels."""
        levels = self._before(left), self._after(right)
        move, _ = levels[0].apart(levels[1])
        first, last = self._series[right[0]].point, self._series[left[1] - 1].point
        before, after = (None, None) if quantity == TIME else (exp(level.mean) for level in levels)
        return Step(
            quantity=quantity,
            ratio=exp(move),
            before=before,
            after=after,
            run=first.run,
            moment=first.moment,
            commit=first.commit,
            last_before=last.commit,
            runs=right[1] - right[0],
        )

    def _creep(
        self, quantity: str, segments: Sequence[Segment], moved: Sequence[tuple[Segment, Segment]]
    ) -> tuple[Creep | None, int]:
        """The surest rise that goes on, and the run from which on; ``None`` if there is none.

        By a straight line, where it fits better than levels do; else from one level to the newest, if no step holds most
        of it. The two newest runs are left out: they may be odd, or a step that has just begun.
        """
        end = len(self._series) - LEAST_RUNS + 1
        known = [(left, min(right, end)) for left, right in segments if left < end]
        lines, stairs = list(self._lines(known)), list(self._rises(known, moved))
        _, move, sure, first = max(lines or stairs, default=(0.0, 0.0, 0.0, 0))
        if move < LEAST_MOVE or sure < SURE:
            return None, 0
        if lines:
            first = self._bend(max((left for left, _ in known if left < first), default=first), first, end)
            line = self._line(first, end)
            move, sure = line.slope * (end - 1 - first), line.sure
        width = move / sure * LEVEL
        commits = [one.point.commit for one in self._series[first + 1 :] if one.point.commit]
        creep = Creep(
            quantity=quantity,
            ratio=exp(move),
            low=exp(move - width),
            high=exp(move + width),
            since=self._series[first].point.moment,
            runs=len(self._series) - 1 - first,
            commits=tuple(dict.fromkeys([commits[0], commits[-1]])) if commits else (),
        )
        return creep, first

    def _lines(self, segments: Sequence[Segment]) -> Iterator[tuple[float, float, float, int]]:
        """Straight lines that rise for sure and cost less than the levels in their place: how much, rise, errors, start."""
        end, levels = segments[-1][1], 0.0
        for place in range(len(segments) - 1, -1, -1):
            start = segments[place][0]
            levels += self._line(start, segments[place][1]).misfit
            line, changes = self._line(start, end), len(segments) - 1 - place
            cheaper = levels + changes * SURE**2 - (line.misfit - line.sure**2 + SURE**2)
            rise = line.slope * (end - 1 - start)
            if end - start >= LEAST_KNOWN and cheaper > 0 and line.sure >= SURE and rise >= LEAST_MOVE:
                yield cheaper, rise, line.sure, start

    def _bend(self, flat: int, start: int, end: int) -> int:
        """Where a level becomes a line: the search for levels sees a rise late, when it is far enough from the level."""

        def cost(place: int) -> float:
            line = self._line(place, end)
            return (self._line(flat, place).misfit if place > flat else 0.0) + line.misfit - line.sure**2

        return min(range(flat, start + 1), key=cost)

    def _rises(
        self, segments: Sequence[Segment], moved: Sequence[tuple[Segment, Segment]]
    ) -> Iterator[tuple[float, float, float, int]]:
        """Rises from earlier levels to the newest of which no step holds most: errors, rise, errors, start."""
        newest = segments[-1]
        steps = [(right[0], self._before(left).apart(self._after(right))[0]) for left, right in moved]
        for left in segments[:-1]:
            before = self._before(left)
            before.loosen(sum(self._jumps[left[1] + 1 : newest[1] + 1]))
            move, sure = before.apart(self._before(newest))
            if move > 0 and all(step < MOST_OF_IT * move for place, step in steps if place >= left[1]):
                yield sure, move, sure, left[1] - 1

    def _line(self, start: int, end: int) -> Level:
        """A straight line through some runs.

        A program that did not change counts as a measured one, lest its exact value says that nothing ever moves.
        """
        line = Level()
        line.observe(self._values[start], self._noise**2)
        for place in range(start + 1, end):
            line.loosen(self._jumps[place])
            if self._series[place].follows_link:
                line.observe(self._series[place - 1].value, COMPILES**2, place - 1 - start)
            if not self._is_link(place):
                line.observe(self._values[place], max(self._variances[place], self._noise**2), place - start)
        return line

    def _is_link(self, place: int) -> bool:
        """Whether a run's program became the next one's baseline: it is taken when that one is."""
        return place + 1 < len(self._series) and self._series[place + 1].follows_link

    def _before(self, segment: Segment) -> Level:
        """The level that the run after a segment is held against, by all of the segment's.

        A run whose program became the next one's baseline is where the next epoch's ratios are counted from: they have its
        error, all of them, and what they are held against is its program, whatever its own duel said.
        """
        level = Level()
        start, end = segment
        for place in range(start, min(end + 1, len(self._series))):
            links = self._jumps[place] if place > start else 0.0
            level.loosen(links)
            if links and self._series[place].follows_link:
                level.observe(self._series[place - 1].value, COMPILES**2)
            if place < end and not (self._is_link(place) and level.variance < inf):
                level.observe(self._values[place], self._variances[place])
        return level

    def _after(self, segment: Segment) -> Level:
        """The level that a segment begins with: by its runs up to the first link, whose error all later ones share."""
        level = Level()
        for place in range(*segment):
            if place > segment[0] and self._jumps[place]:
                break
            level.observe(self._values[place], self._variances[place])
        return level


PHASE_NOISE = 0.05
"""Standard deviation below which no phase is taken to be: it is measured once in a process, on another day each time."""


def split(values: Sequence[float], penalty: float, least: int) -> list[int]:
    """Ends of the levels that fit best: least squares, with a penalty for each level, none shorter than ``least`` values.

    All ends are tried (optimal partitioning; Jackson et al. 2005): 2 ms for 200 runs, and the result is exact.
    """
    import numpy as np  # noqa: PLC0415 - only where a history is looked at

    count = len(values)
    centred = np.asarray(values, float) - median(values or [0.0])
    sums, squares = (np.concatenate([[0.0], np.cumsum(one)]) for one in (centred, centred**2))
    cost, before = np.full(count + 1, np.inf), np.zeros(count + 1, int)
    cost[0] = 0.0
    for end in range(least, count + 1):
        starts = np.arange(end - least + 1)
        spread = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        total = cost[starts] + spread + penalty
        before[end] = np.argmin(total)
        cost[end] = total[before[end]]
    ends, end = [], count
    while end:
        ends.append(end)
        end = int(before[end])
    return ends[::-1]


def changes_of(points: Sequence[HistoryPoint]) -> CaseChanges:
    """All that the history of one case in one folder shows, of its newest run."""
    known = comparable(points)
    chain = chain_times(known)
    policies = (*POLICIES, *ARRIVAL_POLICIES)
    facts = [drift for policy in policies if (drift := fact_drift(known, policy)) is not None and drift.steps]
    shifts = [phase_shifts(known, field.name) for field in fields(Phases)]
    shifts += [] if chain is None else [find_shifts(chain.points, TIME)]
    steps = [step for one in shifts for step in one.steps]
    steps += [step for policy in policies for step in fact_steps(points, policy.name)]
    return CaseChanges(
        drift=None if chain is None else drift_of(chain),
        facts=tuple(facts),
        steps=tuple(sorted(steps, key=lambda step: step.moment)),
        creeps=tuple(one.creep for one in shifts if one.creep is not None),
    )


def phase_shifts(points: Sequence[HistoryPoint], phase: str) -> Shifts:
    """Steps and creep of a phase, by its values on several days: noisy, and moved by the machine as well."""
    series = [
        ChainPoint(point=point, value=log(point.figures[phase]), error=PHASE_NOISE)
        for point in points
        if point.figures.get(phase, 0) > 0
    ]
    return find_shifts(series, phase, least_noise=PHASE_NOISE)
