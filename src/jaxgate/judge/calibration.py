"""Error rates of the gate, from duels of a program with itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from jaxgate.judge.duel import decide_at_looks, scaled
from jaxgate.model import Duel, Status
from jaxgate.model.calibration import CaseCalibration

PLANTS = (0.03, 0.05, 0.10, 0.20)


def calibrate_case(case: str, duels: Sequence[Duel], *, confirmed: int, duel_s: Sequence[float]) -> CaseCalibration:
    """Judge every duel as the gate would, as it is and with slow-downs planted by scaling its times.

    Args:
        case: Name of the case.
        duels: Whole duels (all pairs) of identical programs.
        confirmed: How many first-stage alarms came again in fresh processes.
        duel_s: What each whole duel took; the cost with looks is its share of pairs.
    """
    decisions = [decide_at_looks(duel) for duel in duels]
    seen = {
        plant: mean(decide_at_looks(scaled(duel, 1 + plant)).status is Status.SLOWER for duel in duels)
        for plant in PLANTS
    }
    costs = [
        seconds * decision.pairs / len(duel.now_ns)
        for seconds, decision, duel in zip(duel_s, decisions, duels, strict=True)
    ]
    return CaseCalibration(
        case=case,
        duels=len(duels),
        alarms=sum(decision.status is Status.SLOWER for decision in decisions),
        confirmed=confirmed,
        undecided=sum(decision.status is Status.UNDECIDED for decision in decisions),
        margin=median(decision.margin for decision in decisions),
        sees=median(decision.sees for decision in decisions),
        seen=seen,
        call_ns=median(duel.call_ns(duel.baseline_ns) for duel in duels),
        cost_s=mean(costs),
    )


def rate_bound(events: int, trials: int, confidence: float = 0.95) -> float:
    """Upper bound of a rate: the exact binomial (Clopper-Pearson) limit, found by bisection.

    With no event it is ``1 - (1 - confidence) ** (1 / trials)``: 1 % for 299 trials.
    """
    if events >= trials:
        return 1.0
    low, high = events / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _tail(events, trials, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _tail(events: int, trials: int, rate: float) -> float:
    """Probability of at most so many events."""
    total, term = 0.0, (1 - rate) ** trials
    for count in range(events + 1):
        total += term
        term *= (trials - count) / (count + 1) * rate / (1 - rate) if rate < 1 else 0.0
    return total
