"""What a calibration finds: error rates of the gate, and the margin of a case. Pure.

The rates come from duels of a program with itself and with a slower one.

Noise is learnt from identical programs only, never from a change that is being judged. The floor is the largest
deviation that such duels showed, not a quantile: with tens of duels the largest is the only one that speaks of
rare events, and it grows with their number, never shrinks. It can only widen a margin, up to the cap of all. A high
floor makes nothing green: SAME must still have been able to see a slow-down of 10 %, so that the case is UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from statistics import mean, median

from jaxgate.judge.difference import environment_differences
from jaxgate.judge.timing.duel import MAX_MARGIN, MIN_MARGIN, decide_at_looks, scaled
from jaxgate.model import (
    CaseCalibration,
    Decision,
    Duel,
    HardwareKey,
    NoiseFloor,
    NoiseFloors,
    Plant,
    Status,
    plural,
    shortlist,
)

MAX_DIFFERENCES = 3
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


def noise_floor(duels: Sequence[Duel]) -> float:
    """The most that the median ratio of duels of identical programs was off, either way, as a share."""
    return exp(max(abs(median(duel.logratios)) for duel in duels)) - 1


def why_not_applied(floors: NoiseFloors, hardware: HardwareKey, environment: Mapping[str, str]) -> str:
    """Say why a calibration does not hold here; empty if it does."""
    if floors.hardware != hardware:
        return f"expected hardware `{hardware.slug}`, found `{floors.hardware.slug}`"
    differences = environment_differences(environment, floors.environment)
    if not differences:
        return ""
    return f"it was made in another environment ({shortlist(differences, MAX_DIFFERENCES)})"


def own_margin(floor: NoiseFloor | None) -> float | None:
    """The margin of a case; ``None`` where no calibration is known. Never below that of every case."""
    return None if floor is None else max(MIN_MARGIN, floor.floor)


def name_margin(decision: Decision, floor: NoiseFloor | None) -> Decision:
    """Say in the reason that the margin is the calibration's, where it is."""
    own = own_margin(floor)
    if floor is None or own is None or own <= MIN_MARGIN or decision.margin != min(own, MAX_MARGIN):
        return decision
    duels = plural(floor.duels, "duel")
    how = f"the margin is from the calibration of {floor.date}: identical programs differed by up to {floor.floor:.1%} in {duels}"
    return replace(decision, reason=f"{decision.reason}; {how}")
