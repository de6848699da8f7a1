"""Error rates of the gate, from duels of a program with itself and with a slower one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from statistics import mean, median

from jaxgate.judge.duel import decide_at_looks, scaled
from jaxgate.judge.floors import noise_floor
from jaxgate.model import CaseCalibration, Duel, HardwareKey, Plant, Status

PLANTS = (0.03, 0.05, 0.10, 0.20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Duels of a program with extra work against the program alone; ``why_not`` says why there are none."""

    duels: Sequence[Duel] = ()
    why_not: str = ""


def calibrate_case(
    case: str,
    hardware: HardwareKey,
    duels: Sequence[Duel],
    *,
    planted: Mapping[float, Planted],
    executables: int,
    confirmed: int,
    duel_s: Sequence[float],
    took_s: float,
) -> CaseCalibration:
    """Judge every duel as the gate would, as it is and with slow-downs planted.

    Args:
        case: Name of the case.
        hardware: Where it ran.
        duels: Whole duels (all pairs) of identical programs.
        planted: For each size of slow-down, whole duels with extra work of about that size.
        executables: How many pairs of executables the duels of identical programs used.
        confirmed: How many first-stage alarms came again in fresh processes.
        duel_s: What each whole duel of identical programs took; the cost with looks is its share of pairs.
        took_s: What all of it took.

    Raises:
        BrokenDuelError: If the times of a duel mean nothing.
    """
    decisions = [decide_at_looks(duel) for duel in duels]
    costs = [
        seconds * decision.pairs / len(duel.now_ns)
        for seconds, decision, duel in zip(duel_s, decisions, duels, strict=True)
    ]
    return CaseCalibration(
        case=case,
        hardware=hardware,
        executables=executables,
        alarms=sum(decision.status is Status.SLOWER for decision in decisions),
        confirmed=confirmed,
        undecided=sum(decision.status is Status.UNDECIDED for decision in decisions),
        margin=median(decision.margin for decision in decisions),
        sees=median(decision.sees for decision in decisions),
        floor=noise_floor(duels),
        ratios=tuple(_ratio(duel) for duel in duels),
        plants=tuple(_plant(share, duels, planted.get(share, Planted())) for share in PLANTS),
        call_ns=median(duel.call_ns(duel.baseline_ns) for duel in duels),
        cost_s=mean(costs),
        took_s=took_s,
    )


def _plant(share: float, identical: Sequence[Duel], real: Planted) -> Plant:
    return Plant(
        share=share,
        scaled=mean(is_slower(scaled(duel, 1 + share)) for duel in identical),
        ratios=tuple(_ratio(duel) for duel in real.duels),
        slower=sum(is_slower(duel) for duel in real.duels),
        why_not=real.why_not,
    )


def is_slower(duel: Duel) -> bool:
    """Whether the first stage of the gate would have called today's program slower."""
    return decide_at_looks(duel).status is Status.SLOWER


def _ratio(duel: Duel) -> float:
    return exp(median(duel.logratios))


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
