"""The verdict of a case in two environments: the same code, so whatever differs comes from the environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jaxgate.judge.causes import rank_causes
from jaxgate.judge.claims import check_claims
from jaxgate.judge.facts import compare_facts
from jaxgate.judge.launches import compare_phases, decide_launches, unsteady_facts
from jaxgate.judge.order import conclude, red_quantities
from jaxgate.judge.origin import environment_differences, place
from jaxgate.judge.verdict import NOT_TIMED, measured, timed
from jaxgate.model import (
    SHARED_CORES,
    BrokenDuelError,
    Claim,
    Finding,
    Launches,
    Measurement,
    Origin,
    ReferenceDuel,
    Status,
    TimeVerdict,
    Tolerance,
    Verdict,
)


def judge_environment(
    case: str,
    claims: Iterable[Claim],
    now: Measurement,
    launches: Launches,
    *,
    other: str,
    tolerances: Iterable[Tolerance] = (),
) -> Verdict:
    """Judge one case.

    Args:
        case: ``family/sentence``.
        claims: The case's own claims; they hold in every environment.
        now: Today's measurement in this environment.
        launches: What fresh processes of both recorded.
        other: The other environment, as the user named it.
        tolerances: Facts of this case that may move by another amount than the policy says.
    """
    tolerances = tuple(tolerances)
    if not launches.here or not launches.there:
        name = "comparing the environments"
        finding = Finding(kind="case", name=name, status=Status.INVALID, detail=launches.why_not)
        return conclude(replace(measured(case, now, NOT_TIMED), baseline=other), [finding], strict=False)
    before = launches.there[0]
    findings = [
        *unsteady_facts("here", launches.here),
        *unsteady_facts("there", launches.there),
        *check_claims(
            claims, now, ReferenceDuel(why_not="no duel is run where environments are compared"), tolerances=tolerances
        ),
        *compare_facts(now, before, tolerances),
        *compare_phases(launches.here, launches.there),
    ]
    time = _time(now, launches)
    if time.decision is not None:
        findings.append(timed(time.decision))
    elif time.status is Status.INVALID:
        findings.append(Finding(kind="case", name="timing", status=Status.INVALID, detail=time.reason))
    found = place(now, before)
    where = "environment" if found.place in ("environment", "nothing changed") else f"environment ({found.place})"
    arguments = tuple(
        f"argument {leaf.path}: {old.aval} → {leaf.aval}"
        for leaf, old in zip(now.signature, before.signature, strict=False)
        if leaf.aval != old.aval
    )
    environment = environment_differences(now.environment, before.environment)
    others = [line for line in found.differences if line not in environment]
    origin = Origin(place=where, differences=(*environment, *others, *arguments))
    causes = rank_causes(now, before, red_quantities(findings))
    verdict = replace(measured(case, now, time), baseline=other, origin=origin, causes=causes)
    return conclude(verdict, findings, strict=False)


def _time(now: Measurement, launches: Launches) -> TimeVerdict:
    if now.hardware.is_virtual:
        return TimeVerdict(status=Status.UNDECIDED, reason=SHARED_CORES)
    here, there = ([launch.samples.run_ns for launch in side] for side in (launches.here, launches.there))
    try:
        decision = decide_launches(here, there)
    except BrokenDuelError as error:
        return TimeVerdict(status=Status.INVALID, reason=str(error))
    return TimeVerdict(status=decision.status, reason=decision.reason, decision=decision)
