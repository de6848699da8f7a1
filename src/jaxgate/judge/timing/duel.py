"""What a duel means: exact sign-test bounds on the median log ratio, looked at three times.

The bounds are order statistics (the sign test inverted; Conover, Practical Nonparametric Statistics, 3.2):
they assume nothing of the distribution, need no seed, and can be said in words, "39 of 60 pairs were more
than 3 % slower". Levels are one-sided; three looks with these counts keep a false SLOWER near 1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, comb, exp, log, sqrt
from statistics import median

from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import BrokenDuelError, Duel
from jaxgate.model.words import detectable

LOOKS = {20: 17, 40: 28, 60: 39}
"""Pairs at each look to how many must lie beyond the margin: exact levels 0.0013, 0.0083 and 0.0137."""

CONFIRM_COUNT = 41
"""Pairs of 60 that must be beyond the margin in a fresh process: exact level 0.0031."""

MIN_MARGIN = 0.03
MAX_MARGIN = 0.15
FLOOR_NS = 500
"""A difference per call that nobody gates on: about the cost of one Python call."""

DEFAULT_THRESHOLD = 0.10
"""Slow-down that a verdict of SAME must have been able to see."""

POWER_FACTOR = 1.58
"""From the distance of the bound to the effect seen 9 times in 10: 1 + 1.28 / 2.21 (normal quantiles of power
0.9 and of level 0.0137), the spread of the bound being that of the median."""


def sign_level(count: int, pairs: int) -> float:
    """Probability that ``count`` or more of ``pairs`` fair coins show heads."""
    return float(sum(comb(pairs, k) for k in range(count, pairs + 1)) / 2**pairs)


def bounds(values: Sequence[float], count: int) -> tuple[float, float]:
    """One-sided lower and upper bounds of the median: order statistics.

    ``count`` values must lie beyond a bound: 39 of 60 make it the 22nd from either end.
    """
    ordered = sorted(values)
    rank = len(ordered) - count
    return ordered[rank], ordered[count - 1]


def count_needed(pairs: int) -> int:
    """The count that a number of pairs needs: that of the last look reached, or of level 0.0137 in between."""
    if pairs in LOOKS:
        return LOOKS[pairs]
    return next(
        (count for count in range(pairs // 2, pairs + 1) if sign_level(count, pairs) <= sign_level(39, 60)), pairs
    )


def noise(duel: Duel) -> float:
    """Half-width of the 99 % interval of the median at 60 pairs, each side against itself, as a log ratio."""
    values = duel.noise_logratios
    if not values:
        return 0.0
    pairs = len(values)
    count = next((c for c in range(pairs // 2, pairs + 1) if sign_level(c, pairs) <= 0.005), pairs)  # noqa: PLR2004 - half of 1 %
    low, high = bounds(values, count)
    return (high - low) / 2 * sqrt(min(1.0, pairs / 60))


def margin(duel: Duel, own: float | None = None) -> float:
    """Relative slow-down that does not count: the case's own or 3 %, the noise, and the absolute floor."""
    call_ns = duel.call_ns(duel.baseline_ns)
    wanted = max(own if own is not None else MIN_MARGIN, exp(noise(duel)) - 1, FLOOR_NS / call_ns)
    return min(wanted, MAX_MARGIN)


def decide(
    duel: Duel, *, threshold: float = DEFAULT_THRESHOLD, own_margin: float | None = None, count: int | None = None
) -> Decision:
    """Judge the pairs taken so far.

    ``threshold`` is the slow-down that SAME must have been able to see. ``count`` pairs must lie beyond the margin; by
    default as many as at the look.

    Raises:
        BrokenDuelError: If there are too few pairs to decide anything, a time is not positive, or something
            was traced while timing.
    """
    values = duel.logratios
    if not values:
        raise BrokenDuelError("expected at least one pair, found none")
    if duel.traces:
        raise BrokenDuelError(f"expected no trace or compile while timing, found {duel.traces}")
    pairs = len(values)
    needed = count if count is not None else count_needed(pairs)
    if needed > pairs or sign_level(needed, pairs) > sign_level(39, 60):
        raise BrokenDuelError(f"expected more pairs, found {pairs}: chance alone could make them agree")
    tolerated = margin(duel, own_margin)
    line = log(1 + tolerated)
    low, high = bounds(values, needed)
    centre = median(values)
    sees = exp(line + POWER_FACTOR * max(centre - low, 0.0)) - 1
    slower = sum(value > line for value in values)
    faster = sum(value < -line for value in values)
    if low > line:
        status = Status.SLOWER
        reason = f"{slower} of {pairs} pairs were more than {tolerated:.1%} slower"
    elif high < -line:
        status = Status.FASTER
        reason = f"{faster} of {pairs} pairs were more than {tolerated:.1%} faster"
    elif high < line and sees <= threshold:
        status = Status.SAME
        reason = detectable(sees)
    elif sees <= threshold:
        status = Status.UNDECIDED
        reason = f"neither within nor beyond the margin of {tolerated:.1%}"
    else:
        status = Status.UNDECIDED
        reason = f"{detectable(sees)}, {threshold:.0%} is asked for; {_more(pairs, sees, threshold, tolerated)}"
    return Decision(
        status=status,
        ratio=exp(centre),
        low=exp(low),
        high=exp(high),
        pairs=pairs,
        margin=tolerated,
        sees=sees,
        threshold=threshold,
        now_ns=duel.call_ns(duel.now_ns),
        baseline_ns=duel.call_ns(duel.baseline_ns),
        reason=reason,
    )


def decide_at_looks(duel: Duel, *, threshold: float = DEFAULT_THRESHOLD, own_margin: float | None = None) -> Decision:
    """What a whole duel would have decided, had it been allowed to stop at its looks."""
    for pairs in LOOKS:
        part = replace(duel, now_ns=duel.now_ns[:pairs], baseline_ns=duel.baseline_ns[:pairs])
        decision = decide(part, threshold=threshold, own_margin=own_margin)
        if decision.status is not Status.UNDECIDED:
            break
    return decision


def scaled(duel: Duel, factor: float) -> Duel:
    """The same duel with today's times multiplied: a slow-down planted for free."""
    return replace(duel, now_ns=tuple(tuple(round(burst * factor) for burst in half) for half in duel.now_ns))


def is_settled(duel: Duel, *, threshold: float = DEFAULT_THRESHOLD, own_margin: float | None = None) -> bool:
    """Whether a duel may stop: at a look with a decision, or at the last look."""
    pairs = len(duel.now_ns)
    if pairs >= max(LOOKS):
        return True
    return pairs in LOOKS and decide(duel, threshold=threshold, own_margin=own_margin).status is not Status.UNDECIDED


def _more(pairs: int, sees: float, threshold: float, tolerated: float) -> str:
    """How many pairs would be needed: the interval shrinks with the root of their number, the margin does not."""
    if threshold <= tolerated:
        return f"no number of pairs would do, with a margin of {tolerated:.1%}"
    needed = pairs * (log((1 + sees) / (1 + tolerated)) / log((1 + threshold) / (1 + tolerated))) ** 2
    return f"about {ceil(needed / 10) * 10:,} pairs would be needed"
