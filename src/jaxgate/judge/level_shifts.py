"""Steps and creep in the history of one quantity: a change-point search proposes, a test with the chain's errors decides.

The search (least squares with a penalty; Killick, Fearnhead and Eckley 2012, PELT) knows nothing of links: it would
call the error of one accepted refresh a step. So each boundary that it proposes is tested between the levels on both
sides, which are estimated by a local-level filter (Durbin and Koopman, Time Series Analysis by State Space Methods, 2)
whose level moves at refreshes only, by the error of the link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log, sqrt
from statistics import median

from jaxgate.judge.time_chain import COMPILES, LEVEL, ChainPoint
from jaxgate.model import TIME, Creep, Step

SURE = 5.0
"""Standard errors that a move must have. A history of 200 runs, looked at after each of them, has 200 × 200 / 2 pairs
of a last run and a boundary; the chance that any of them is beyond 5, either way, is at most 20,000 × 5.7e-7 = 1.1 %."""
LEAST_RUNS = 3
"""Of a level: with fewer, one odd run would be one."""
LEAST_HISTORY = 10
"""Runs before anything is said."""
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

Split = Callable[[Sequence[float], float, int], Sequence[int]]
"""Finds change points: values in units of their noise, the penalty of each, and the least runs of a level; gives the ends of
all levels, the last being the number of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """What moved.

    Attributes:
        steps: Oldest first.
        creep: What goes on until the newest run, if that is no step.
        noise: Standard deviation of a run that was reckoned with.
    """

    steps: tuple[Step, ...] = ()
    creep: Creep | None = None
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class _Level:
    """Estimated at one end of a segment: its mean and variance."""

    mean: float
    variance: float


def find_shifts(
    series: Sequence[ChainPoint], quantity: str, split: Split, *, least_noise: float = TYPICAL_NOISE
) -> Shifts:
    """Look for steps, and for creep that goes on until the newest run.

    Args:
        series: The runs, oldest first.
        quantity: Its name.
        split: The search for change points.
        least_noise: Standard deviation below which no history is taken to be.
    """
    if len(series) < LEAST_HISTORY:
        return Shifts()
    noise = max(least_noise, noise_of(series))
    values = _without_odd_runs([one.value for one in series], noise)
    ends = split([value / noise for value in values], SURE**2, LEAST_RUNS)
    segments = list(zip([0, *ends[:-1]], ends, strict=True))
    work = _Work(series, values, noise)
    steps = tuple(work.step(quantity, left, right) for left, right in work.moved(segments))
    return Shifts(steps=steps, creep=work.creep(quantity, segments), noise=noise)


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
    if len(moves) < LEAST_HISTORY:
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

    def moved(self, segments: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Neighbouring levels that differ for sure."""
        for left, right in pairwise(segments):
            move, sure = self._step(left, right)
            if sure >= SURE and abs(move) >= LEAST_MOVE and self._begins(left, right):
                yield left, right

    def step(self, quantity: str, left: tuple[int, int], right: tuple[int, int]) -> Step:
        """The move between two neighbouring levels."""
        move, sure = self._step(left, right)
        first, last = self._series[right[0]].point, self._series[left[1] - 1].point
        absolute = quantity != TIME
        return Step(
            quantity=quantity,
            ratio=exp(move),
            before=exp(self._before(left).mean) if absolute else None,
            after=exp(self._after(right).mean) if absolute else None,
            run=first.run,
            moment=first.moment,
            commit=first.commit,
            last_before=last.commit,
            runs=right[1] - right[0],
            sure=sure,
        )

    def creep(self, quantity: str, segments: Sequence[tuple[int, int]]) -> Creep | None:
        """The surest rise until the newest run, if no step holds most of it."""
        steps = [right[0] for _, right in self.moved(segments)]
        flat = [start for start, _ in segments if start >= max(steps, default=0)]
        rises = [(*self._rise(left, segments[-1]), left[1] - 1) for left in segments[:-1]]
        slopes = [(*self._slope(start), start) for start in flat if len(self._series) - start >= LEAST_HISTORY]
        held = [(right[0], self._step(left, right)[0]) for left, right in self.moved(segments)]
        rises = [rise for rise in rises if all(move < MOST_OF_IT * rise[0] for place, move in held if place > rise[2])]
        move, sure, first = max((*rises, *slopes), key=lambda rise: rise[1] if rise[0] > 0 else -1.0, default=(0, 0, 0))
        if move < LEAST_MOVE or sure < SURE:
            return None
        width = move / sure * LEVEL
        commits = [one.point.commit for one in self._series[first + 1 :] if one.point.commit]
        return Creep(
            quantity=quantity,
            ratio=exp(move),
            low=exp(move - width),
            high=exp(move + width),
            since=self._series[first].point.moment,
            runs=len(self._series) - 1 - first,
            commits=tuple(dict.fromkeys([commits[0], commits[-1]])) if commits else (),
            sure=sure,
        )

    def _begins(self, left: tuple[int, int], right: tuple[int, int]) -> bool:
        """Whether a level's first run is on it. Two odd runs at the end need a third, and the search takes the one before."""
        before, after, first = self._before(left).mean, self._after(right).mean, self._values[right[0]]
        return abs(first - after) <= abs(first - before)

    def _step(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[float, float]:
        """How far two neighbouring levels are apart, and how many standard errors that is."""
        return _apart(self._before(left), self._after(right))

    def _rise(self, left: tuple[int, int], newest: tuple[int, int]) -> tuple[float, float]:
        """How far the newest run's level is from an earlier one, and how many standard errors that is."""
        before = self._before(left)
        links = sum(self._jumps[left[1] + 1 : newest[1]])
        return _apart(_Level(before.mean, before.variance + links), self._before(newest))

    def _slope(self, start: int) -> tuple[float, float]:
        """The rise from a run to the newest by a straight line, and how many standard errors it is.

        Generalised least squares by the filter: its innovations are independent, of the values and of the line alike.
        A program that did not change counts as a measured one, lest its exact value says that nothing ever moves.
        """
        line = _Line(self._values[start], self._noise**2)
        for place in range(start + 1, len(self._series)):
            line.loosen(self._jumps[place])
            if self._series[place].follows_link:
                line.observe(self._series[place - 1].value, place - 1 - start, COMPILES**2)
            if not self._is_link(place):
                line.observe(self._values[place], place - start, max(self._variances[place], self._noise**2))
        rise, sure = line.slope()
        return rise * (len(self._series) - 1 - start), sure

    def _is_link(self, place: int) -> bool:
        """Whether a run's program became the next one's baseline: it is taken when that one is."""
        return place + 1 < len(self._series) and self._series[place + 1].follows_link

    def _before(self, segment: tuple[int, int]) -> _Level:
        """The level that the run after a segment is held against, by all of the segment's.

        A run whose program became the next one's baseline is where the next epoch's ratios are counted from: they have its
        error, all of them, and what they are held against is its program, whatever its own duel said.
        """
        mean, variance = 0.0, inf
        start, end = segment
        for place in range(start, min(end + 1, len(self._series))):
            links = self._jumps[place] if place > start else 0.0
            variance += links
            if links and self._series[place].follows_link:
                mean, variance = _updated(mean, variance, self._series[place - 1].value, COMPILES**2)
            if place < end and not (self._is_link(place) and variance < inf):
                mean, variance = _updated(mean, variance, self._values[place], self._variances[place])
        return _Level(mean, variance)

    def _after(self, segment: tuple[int, int]) -> _Level:
        """The level that a segment begins with: by its runs up to the first link, whose error all later ones share."""
        mean, variance = 0.0, inf
        for place in range(*segment):
            if place > segment[0] and self._jumps[place]:
                break
            mean, variance = _updated(mean, variance, self._values[place], self._variances[place])
        return _Level(mean, variance)


class _Line:
    """A level with a slope, and the regression on the innovations of both."""

    def __init__(self, value: float, variance: float) -> None:
        self._level, self._run, self._variance = value, 0.0, variance
        self._products = self._squares = 0.0

    def loosen(self, variance: float) -> None:
        """Let the level move by so much."""
        self._variance += variance

    def observe(self, value: float, run: float, own: float) -> None:
        """Take a value, and at which run it is."""
        moved, away, total = value - self._level, run - self._run, self._variance + own
        self._products += moved * away / total
        self._squares += away * away / total
        share = self._variance / total
        self._level, self._run, self._variance = self._level + moved * share, self._run + away * share, own * share

    def slope(self) -> tuple[float, float]:
        """The slope a run, and how many standard errors it is."""
        return self._products / self._squares, abs(self._products) / sqrt(self._squares)


def _updated(mean: float, variance: float, value: float, own: float) -> tuple[float, float]:
    """A level after one more observation of it."""
    if variance == inf:
        return value, own
    share = variance / (variance + own)
    return mean + share * (value - mean), variance * (1 - share)


def _apart(before: _Level, after: _Level) -> tuple[float, float]:
    move = after.mean - before.mean
    return move, abs(move) / sqrt(before.variance + after.variance) if move else 0.0
