"""The verdict of a case in two environments: the same code, so whatever differs comes from the environment.

Their times are compared by launches: fresh processes of each, in random order. The process is the unit of noise: two
processes of one program have been seen to differ by 30 %, with a tight interval in each. So a side is slower only if
every launch of it is beyond every launch of the other. The order being random, chance alone does that once in
``comb(2 n, n)``, whatever the distribution (the rank test of Mann and Whitney at its extreme): once in 252 with five
launches of each, once in 70 with four.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from math import exp, log
from statistics import median

from jaxgate.judge.causes.program_causes import compare_products
from jaxgate.judge.causes.suspects import rank_causes
from jaxgate.judge.claims import check_claims
from jaxgate.judge.difference import ONLY_SOURCE, Difference
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.order import conclude, red_quantities
from jaxgate.judge.policy import PHASE_POLICIES
from jaxgate.judge.timing.duel import DEFAULT_THRESHOLD, FLOOR_NS, MAX_MARGIN, MIN_MARGIN, POWER_FACTOR
from jaxgate.judge.verdict import NOT_TIMED, measured, timed, why_untimed
from jaxgate.model.baseline import Baseline, Launches
from jaxgate.model.claim import Claim
from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import BrokenDuelError, ReferenceDuel
from jaxgate.model.measurement import Measurement
from jaxgate.model.numbers import Facts
from jaxgate.model.policy import FactPolicy
from jaxgate.model.verdict import BaselineNote, Finding, Origin, TimeVerdict, Verdict
from jaxgate.model.words import detectable, plural
from jaxgate.model.workload import Tolerance

MIN_LAUNCHES = 4
"""Fewer of each decide nothing: with three, chance alone separates them once in 20."""


def judge_environment(
    case: str,
    claims: Iterable[Claim],
    now: Measurement,
    launches: Launches,
    *,
    other: str,
    tolerances: Iterable[Tolerance] = (),
) -> Verdict:
    """Judge one case, named ``family/sentence``; its claims hold in every environment."""
    tolerances = tuple(tolerances)
    if not launches.here or not launches.there:
        name = "comparing the environments"
        finding = Finding(kind="case", name=name, status=Status.INVALID, detail=launches.why_not)
        return conclude(
            replace(measured(case, now, NOT_TIMED), baseline=BaselineNote(described=other)), [finding], strict=False
        )
    before = launches.there[0]
    difference = Difference(now, before)
    findings = [
        *unsteady_facts("here", launches.here),
        *unsteady_facts("there", launches.there),
        *check_claims(
            claims, now, ReferenceDuel(why_not="no duel is run where environments are compared"), tolerances=tolerances
        ),
        *compare_products(now, before),
        *compare_facts(difference, tolerances),
        *compare_phases(launches.here, launches.there),
    ]
    time = _time(now, launches)
    if time.decision is not None:
        findings.append(timed(time.decision))
    elif time.status is Status.INVALID:
        findings.append(Finding(kind="case", name="timing", status=Status.INVALID, detail=time.reason))
    found = difference.origin
    where = (
        "environment"
        if found.place in ("environment", "nothing changed", ONLY_SOURCE)
        else f"environment ({found.place})"
    )
    arguments = tuple(
        f"argument {leaf.path}: {old.aval} → {leaf.aval}"
        for leaf, old in zip(now.signature, before.signature, strict=False)
        if leaf.aval != old.aval
    )
    others = [line for line in found.differences if line not in difference.changed_environment]
    origin = Origin(place=where, differences=(*difference.changed_environment, *others, *arguments))
    causes = rank_causes(now, before, red_quantities(findings))
    verdict = replace(measured(case, now, time), baseline=BaselineNote(described=other), origin=origin, causes=causes)
    return conclude(verdict, findings, strict=False)


def _time(now: Measurement, launches: Launches) -> TimeVerdict:
    if why := why_untimed(now):
        anywhere = now.hardware.is_virtual or now.compiled_only
        return TimeVerdict(status=Status.UNDECIDED, reason=why, anywhere=anywhere)
    sides = (launches.here, launches.there)
    here, there = ([one.samples.run_ns for one in side if one.samples] for side in sides)
    if (len(here), len(there)) != tuple(map(len, sides)):
        reason = f"{len(here)} of {len(sides[0])} launches here recorded a time, {len(there)} of {len(sides[1])} there"
        return TimeVerdict(status=Status.INVALID, reason=reason)
    try:
        decision = decide_launches(here, there)
    except BrokenDuelError as error:
        return TimeVerdict(status=Status.INVALID, reason=str(error))
    return TimeVerdict(status=decision.status, reason=decision.reason, decision=decision)


def decide_launches(here: Sequence[float], there: Sequence[float]) -> Decision:
    """Judge the median call of each launch, in nanoseconds.

    Returns:
        The decision; ``low`` and ``high`` are the least and the greatest ratio of any two launches, ``pairs``
        is the number of launches of each.

    Raises:
        BrokenDuelError: If a time is not positive.
    """
    if min(*here, *there) <= 0:
        raise BrokenDuelError(f"expected positive times, found {min(*here, *there)} ns: the clock cannot be trusted")
    launches = min(len(here), len(there))
    centre_here, centre_there = median(here), median(there)
    ratio, low, high = centre_here / centre_there, min(here) / max(there), max(here) / min(there)
    tolerated = min(max(MIN_MARGIN, FLOOR_NS / centre_there), MAX_MARGIN)
    spread = log(max(there) / centre_there * centre_here / min(here))
    sees = exp(log(1 + tolerated) + POWER_FACTOR * spread) - 1
    if launches < MIN_LAUNCHES:
        status, reason = (
            Status.UNDECIDED,
            f"{plural(launches, 'launch', 'launches')} of each decide nothing, {MIN_LAUNCHES} are needed",
        )
    elif low > 1 + tolerated:
        status, reason = Status.SLOWER, f"every launch was more than {tolerated:.1%} slower than every launch there"
    elif high < 1 / (1 + tolerated):
        status, reason = Status.FASTER, f"every launch was more than {tolerated:.1%} faster than every launch there"
    elif sees > DEFAULT_THRESHOLD:
        status = Status.UNDECIDED
        reason = f"launches differ among themselves: {detectable(sees)}"
    elif not 1 / (1 + tolerated) <= ratio <= 1 + tolerated:
        status, reason = Status.UNDECIDED, f"neither within nor beyond the margin of {tolerated:.1%}"
    else:
        status, reason = Status.SAME, detectable(sees)
    return Decision(
        status=status,
        ratio=ratio,
        low=low,
        high=high,
        pairs=launches,
        margin=tolerated,
        sees=sees,
        threshold=DEFAULT_THRESHOLD,
        now_ns=centre_here,
        baseline_ns=centre_there,
        reason=reason,
    )


def compare_phases(here: Sequence[Baseline], there: Sequence[Baseline]) -> Iterator[Finding]:
    """Hold tracing, lowering, compiling and the first call against the other environment's.

    A phase is worse only if its best launch here is beyond the worst one there by more than a relative and an
    absolute floor.
    """
    if min(len(here), len(there)) < MIN_LAUNCHES:
        return
    for policy, ours, theirs in _phases(here, there):
        status = Status.SAME
        if _is_worse(policy, ours, theirs):
            status = Status.REGRESSED
        elif policy.is_better(max(ours), min(theirs)):
            status = Status.IMPROVED
        against = median(theirs)
        yield Finding(
            kind="phase",
            name=policy.name,
            status=status,
            now=median(ours),
            against=against,
            allowed=policy.worst_allowed(round(against)),
        )


def may_be_slower(now: Sequence[Baseline], before: Sequence[Baseline]) -> bool:
    """Whether every launch so far is beyond every launch of the other, in the time of a call or in a phase.

    Only then may further launches accuse it: one that is not beyond acquits it for good.
    """
    decision = _so_far(now, before)
    if decision is not None and decision.low > 1 + decision.margin:
        return True
    return any(_is_worse(policy, ours, theirs) for policy, ours, theirs in _phases(now, before))


def may_be_faster(now: Sequence[Baseline], before: Sequence[Baseline]) -> bool:
    """Whether every launch so far takes less for a call than every one of the other."""
    decision = _so_far(now, before)
    return decision is not None and decision.high < 1 / (1 + decision.margin)


def _so_far(now: Sequence[Baseline], before: Sequence[Baseline]) -> Decision | None:
    ours, theirs = ([launch.samples.run_ns for launch in side if launch.samples] for side in (now, before))
    return decide_launches(ours, theirs) if ours and theirs and min(*ours, *theirs) > 0 else None


def _phases(now: Sequence[Baseline], before: Sequence[Baseline]) -> Iterator[tuple[FactPolicy, list[int], list[int]]]:
    """The phases of all launches; one that came out of a cache, or that the backend does not report, is left out."""
    for policy in PHASE_POLICIES:
        ours, theirs = ([getattr(launch.phases, policy.name) for launch in side] for side in (now, before))
        if None not in (*ours, *theirs):
            yield policy, ours, theirs


def _is_worse(policy: FactPolicy, ours: Sequence[int], theirs: Sequence[int]) -> bool:
    return policy.is_worse(min(ours), max(theirs))


def unsteady_facts(side: str, launches: Sequence[Baseline]) -> Iterator[Finding]:
    """Facts that differ between launches of one environment: no difference in them means anything."""
    for field in fields(Facts):
        values = {getattr(launch.facts, field.name) for launch in launches}
        if len(values) > 1:
            known = ", ".join(sorted(map(str, values)))
            yield Finding(
                kind="case",
                name=field.name,
                status=Status.INVALID,
                detail=f"launches {side} differ among themselves ({known}): it cannot be compared",
            )
