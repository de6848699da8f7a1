"""Error rates of the gate: out of duels of a program with itself, and with itself plus a slow-down planted on purpose. Pure.

Noise is learnt from identical programs only, never from a change that is being judged. The floor is the largest
deviation that such duels showed, not a quantile: with tens of duels the largest is the only one that speaks of
rare events, and it grows with their number, never shrinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from statistics import mean, median

from scipy.stats import beta

from jaxgate.judge.timing.duel import decide_at_looks, scaled
from jaxgate.model.decision import Status
from jaxgate.model.duel import Duel
from jaxgate.model.machine import HardwareKey

PLANTS = (0.03, 0.05, 0.10, 0.20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Duels of a program with extra work against the program alone; ``why_not`` says why there are none."""

    duels: Sequence[Duel] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One size of slow-down, planted twice: by scaling the times, and as extra work on the device."""

    share: float  # relative slow-down that was wanted
    scaled: float  # share of the duels with scaled times that called it SLOWER
    ratios: tuple[float, ...]  # median ratio of each duel with extra work, as it was measured
    slower: int  # how many of those duels called it SLOWER
    why_not: str  # why no extra work was planted, where none was


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRates:
    """The outcome of many duels of one program with itself."""

    case: str  # name of the case
    hardware: HardwareKey  # where it ran
    executables: int  # how many pairs of executables the duels of identical programs used
    alarms: int  # how many of these duels called one of them slower (false alarms at stage one)
    confirmed: int  # how many of those came again in fresh processes
    undecided: int  # how many were UNDECIDED
    margin: float  # median margin that was in force
    sees: float  # median of the smallest slow-down that would have been seen
    floor: float  # the most that the median ratio of one of these duels was off, either way, as a share
    ratios: tuple[float, ...]  # median ratio of each of these duels
    plants: tuple[Plant, ...]  # what was planted
    call_ns: float  # median time of a call
    cost_s: float  # mean time of a duel, looks allowed
    took_s: float  # what calibrating the case took

    @property
    def duels(self) -> int:
        """How many duels of identical programs were run."""
        return len(self.ratios)


def rates(
    case: str,
    hardware: HardwareKey,
    duels: Sequence[Duel],
    *,
    planted: Mapping[float, Planted],
    executables: int,
    confirmed: int,
    duel_s: Sequence[float],
    took_s: float,
) -> CaseRates:
    """Judge every duel, all pairs of identical programs, as the gate would, as it is and with slow-downs planted.

    ``planted`` has for each size of slow-down duels with about so much extra work. ``executables`` counts pairs, ``confirmed``
    the first-stage alarms that came again in fresh processes. ``duel_s`` is of whole duels; the cost with looks is its share
    of pairs.

    Raises:
        BrokenDuelError: If the times of a duel mean nothing.
    """
    decisions = [decide_at_looks(duel) for duel in duels]
    statuses = [decision.status for decision in decisions]
    pairs = [decision.pairs / len(duel.now_ns) for decision, duel in zip(decisions, duels, strict=True)]
    return CaseRates(
        case=case,
        hardware=hardware,
        executables=executables,
        alarms=statuses.count(Status.SLOWER),
        confirmed=confirmed,
        undecided=statuses.count(Status.UNDECIDED),
        margin=median(decision.margin for decision in decisions),
        sees=median(decision.sees for decision in decisions),
        floor=noise_floor(duels),
        ratios=tuple(map(_ratio, duels)),
        plants=tuple(_plant(share, duels, planted.get(share, Planted())) for share in PLANTS),
        call_ns=median(duel.call_ns(duel.baseline_ns) for duel in duels),
        cost_s=mean(seconds * share for seconds, share in zip(duel_s, pairs, strict=True)),
        took_s=took_s,
    )


def _plant(share: float, identical: Sequence[Duel], real: Planted) -> Plant:
    return Plant(
        share=share,
        scaled=mean(is_slower(scaled(duel, 1 + share)) for duel in identical),
        ratios=tuple(map(_ratio, real.duels)),
        slower=sum(map(is_slower, real.duels)),
        why_not=real.why_not,
    )


def is_slower(duel: Duel) -> bool:
    """Whether the first stage of the gate would have called today's program slower."""
    return decide_at_looks(duel).status is Status.SLOWER


def _ratio(duel: Duel) -> float:
    return exp(median(duel.logratios))


def noise_floor(duels: Sequence[Duel]) -> float:
    """The most that the median ratio of duels of identical programs was off, either way, as a share."""
    return exp(max(abs(median(duel.logratios)) for duel in duels)) - 1


def rate_bound(events: int, trials: int) -> float:
    """Upper bound of a rate with 95 % confidence: the exact binomial (Clopper-Pearson) limit."""
    return 1.0 if events >= trials else float(beta.ppf(0.95, events + 1, trials - events))
