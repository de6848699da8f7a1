"""Claims: what must hold for a case on any hardware, with or without a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jaxgate.judge.run_claims import check_run_claim
from jaxgate.model import (
    RIVALS,
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
        yield _check(claim, now)


def _check(claim: Claim, now: Measurement) -> Finding:
    left, (right, rival) = quantity(claim.quantity, now), _other(claim, now)
    if left is None or right is None:
        detail = f"cannot be checked: {_missing(claim, now, left)}"
        return Finding(kind="claim", name=str(claim), status=Status.INVALID, now=left, detail=detail)
    allowed = claim.factor * right
    held = _holds(claim, left, allowed)
    known, jax = claim.known_break, now.environment.get("jax")
    if known is not None and (jax is None or not known.covers(jax, now.hardware.platform)):
        known = None
    return Finding(
        kind="claim",
        name=str(claim),
        status=Status.SAME if held else Status.EXPECTED if known is not None else Status.REGRESSED,
        now=left,
        against=right if claim.other != "one" else allowed,
        allowed=allowed,
        detail="; ".join(part for part in (claim.why, rival) if part),
        known_break=known,
    )


def _missing(claim: Claim, now: Measurement, left: float | None) -> str:
    """Why a claim has no numbers."""
    if left is not None and claim.other == "reference" and now.reference is None:
        return "the case has no reference"
    if left is not None and claim.other == RIVALS and not now.rivals:
        return "the case has no rivals"
    if left is None and claim.quantity in now.unknown:
        return f"{claim.quantity} is unknown: {now.unknown[claim.quantity]}"
    return f"{claim.quantity if left is None or claim.other == RIVALS else claim.other} is unknown on this backend"


def quantity(name: str, of: Measurement | ReferenceFacts) -> float | None:
    """Look up a fact, a phase or a derived number."""
    for numbers in (of.facts, of.phases):
        if hasattr(numbers, name):
            value = getattr(numbers, name)
            return None if value is None else float(value)
    raise KeyError(name)  # Claim refuses unknown names when it is made


def _other(claim: Claim, now: Measurement) -> tuple[float | None, str]:
    """The right side's number, and which rival it is of."""
    if claim.other == "one":
        return 1.0, ""
    if claim.other == "reference":
        return None if now.reference is None else quantity(claim.quantity, now.reference), ""
    if claim.other == RIVALS:
        return _rival(claim, now)
    if claim.other == "analytic_flops":
        return None if now.analytic_flops is None else float(now.analytic_flops), ""
    return quantity(claim.other, now), ""


def _rival(claim: Claim, now: Measurement) -> tuple[float | None, str]:
    """The rival that is hardest to match: the best one, or of an equality the one that is farthest away."""
    left = quantity(claim.quantity, now)
    found = {name: quantity(claim.quantity, rival) for name, rival in now.rivals.items()}
    known = {name: value for name, value in found.items() if value is not None}
    if left is None or not known or len(known) < len(found):
        return None, ""
    hardest = {
        "<=": lambda name: -known[name],
        ">=": lambda name: known[name],
        "==": lambda name: abs(known[name] - left),
    }[claim.relation]
    name = max(sorted(known), key=hardest)
    return known[name], f"{name} has it"


def _holds(claim: Claim, left: float, allowed: float) -> bool:
    slack = 0.0 if float(claim.factor).is_integer() else COUNT_TOLERANCE * abs(allowed)
    if claim.relation == "<=":
        return left <= allowed + slack
    if claim.relation == ">=":
        return left >= allowed - slack
    return abs(left - allowed) <= slack
