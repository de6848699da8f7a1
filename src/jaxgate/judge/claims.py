"""Claims: what must hold for a case on any hardware, with or without a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jaxgate.judge.run_claims import check_run_claim
from jaxgate.model import (
    Claim,
    Finding,
    Measurement,
    ReferenceDuel,
    ReferenceFacts,
    Status,
    Tolerance,
    at_most,
    equal,
)

COUNT_TOLERANCE = 1e-9


def universal_claims(measurement: Measurement, tolerances: Iterable[Tolerance] = ()) -> tuple[Claim, ...]:
    """What holds for every case: one trace over the threaded steps, silence after it, and donation that works.

    Args:
        measurement: Says how many traces the steps need, and whether anything is donated.
        tolerances: The workload's own; one of ``lost_bytes`` loosens the last claim.
    """
    traces = measurement.expected_traces
    claims = (
        equal("traces", to=traces, why="state threaded through real steps must not retrace"),
        equal("lowerings", to=traces, why="nor be lowered again"),
        equal("compiles", to=traces, why="nor recompile"),
        equal("sampled_traces", to=0, why="the steady state must not trace"),
        equal("sampled_compiles", to=0, why="the steady state must not compile"),
    )
    if measurement.host or not measurement.facts.donated_bytes:  # what inner functions lose is not seen from outside
        return claims
    lost = next((tolerance.absolute for tolerance in tolerances if tolerance.fact == "lost_bytes"), 0)
    return (*claims, at_most(lost, "lost_bytes", of="one", why="what is donated is reused"))


NO_DUEL = ReferenceDuel()


def check_claims(
    claims: Iterable[Claim],
    now: Measurement,
    told: ReferenceDuel = NO_DUEL,
    *,
    tolerances: Iterable[Tolerance] = (),
) -> Iterator[Finding]:
    """Check every claim; one whose numbers are unknown is INVALID, never passed over.

    Args:
        claims: The case's own claims; those of every case are added.
        now: Today's measurement.
        told: What a duel of subject and reference said, for claims about run time.
        tolerances: The workload's own.
    """
    for claim in (*universal_claims(now, tolerances), *claims):
        if claim.needs_duel:
            yield check_run_claim(claim, now, told)
            continue
        left, right = quantity(claim.quantity, now), _other(claim, now)
        if left is None or right is None:
            missing = f"{claim.quantity if left is None else claim.other} is unknown on this backend"
            if left is not None and claim.other == "reference" and now.reference is None:
                missing = "the case has no reference"
            elif left is None and claim.quantity in now.unknown:
                missing = f"{claim.quantity} is unknown: {now.unknown[claim.quantity]}"
            yield Finding(
                kind="claim",
                name=str(claim),
                status=Status.INVALID,
                now=left,
                detail=f"cannot be checked: {missing}",
            )
            continue
        allowed = claim.factor * right
        held = _holds(claim, left, allowed)
        yield Finding(
            kind="claim",
            name=str(claim),
            status=Status.SAME if held else Status.REGRESSED,
            now=left,
            against=right if claim.other != "one" else allowed,
            allowed=allowed,
            detail=claim.why,
        )


def quantity(name: str, of: Measurement | ReferenceFacts) -> float | None:
    """Look up a fact, a phase or a derived number."""
    for numbers in (of.facts, of.phases):
        if hasattr(numbers, name):
            value = getattr(numbers, name)
            return None if value is None else float(value)
    raise KeyError(name)  # Claim refuses unknown names when it is made


def _other(claim: Claim, now: Measurement) -> float | None:
    if claim.other == "one":
        return 1.0
    if claim.other == "reference":
        return None if now.reference is None else quantity(claim.quantity, now.reference)
    if claim.other == "analytic_flops":
        return None if now.analytic_flops is None else float(now.analytic_flops)
    return quantity(claim.other, now)


def _holds(claim: Claim, left: float, allowed: float) -> bool:
    slack = 0.0 if float(claim.factor).is_integer() else COUNT_TOLERANCE * abs(allowed)
    if claim.relation == "<=":
        return left <= allowed + slack
    if claim.relation == ">=":
        return left >= allowed - slack
    return abs(left - allowed) <= slack
