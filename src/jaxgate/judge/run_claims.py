"""Claims about run time: the subject against a multiple of its reference, by a duel of the two here and now.

A claim is judged like a slow-down: the same looks, bounds and margin, after the subject's times were divided by
the claim's factor. A lower limit is the same question with the sides exchanged: that the reference's time is at
most the inverse factor times the subject's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log

from jaxgate.judge.duel import FLOOR_NS, LOOKS, MIN_MARGIN, decide, scaled
from jaxgate.model import Claim, Decision, Duel, Finding, Measurement, ReferenceDuel, Status

_MIRRORED = {Status.SLOWER: Status.FASTER, Status.FASTER: Status.SLOWER}


def breaks(claim: Claim) -> Status:
    """What a decision says where the claim is broken: slower than an upper limit, faster than a lower one."""
    return Status.SLOWER if claim.relation == "<=" else Status.FASTER


def decide_claim(claim: Claim, duel: Duel, *, count: int | None = None) -> Decision:
    """Judge the pairs taken so far against a limit.

    Args:
        claim: About run time.
        duel: The subject's times as today's program, the reference's as the other.
        count: Pairs that must lie beyond the margin; that of the look by default.

    Returns:
        SLOWER or FASTER than the limit, SAME as it, or UNDECIDED. The ratio and its bounds are those of
        subject / reference; margin and smallest visible effect are relative to the limit.

    Raises:
        BrokenDuelError: If the times mean nothing.
    """
    upper = claim.relation == "<="
    framed = scaled(duel, 1 / claim.factor) if upper else scaled(_exchanged(duel), claim.factor)
    values = framed.logratios
    found = decide(framed, own_margin=_own_margin(duel) if values else None, count=count)
    line = log(1 + found.margin)
    beyond, short_of = sum(value > line for value in values), sum(value < -line for value in values)
    bounds = found.low, found.ratio, found.high
    if upper:
        low, ratio, high = (bound * claim.factor for bound in bounds)
        status, slower, faster = found.status, beyond, short_of
    else:
        high, ratio, low = (claim.factor / bound for bound in bounds)
        status, slower, faster = _MIRRORED.get(found.status, found.status), short_of, beyond
    reasons = {
        Status.SLOWER: f"{slower} of {found.pairs} pairs were more than {found.margin:.1%} slower than that",
        Status.FASTER: f"{faster} of {found.pairs} pairs were more than {found.margin:.1%} faster than that",
        Status.SAME: f"within {found.margin:.1%} of that; {found.sees:.1%} beyond it would have shown",
        Status.UNDECIDED: f"{found.pairs} pairs give {low:.2f} to {high:.2f} ×: too close to tell, margin {found.margin:.1%}",
    }
    return replace(
        found,
        status=status,
        ratio=ratio,
        low=low,
        high=high,
        now_ns=duel.call_ns(duel.now_ns),
        baseline_ns=duel.call_ns(duel.baseline_ns),
        reason=reasons[status],
    )


def hold(claims: Iterable[Claim], duel: Duel) -> bool:
    """Whether a duel decides that every claim holds."""
    return all(decide_claim(claim, duel).status not in (breaks(claim), Status.UNDECIDED) for claim in claims)


def are_settled(claims: Sequence[Claim], duel: Duel) -> bool:
    """Whether a duel may stop: at a look that decides every claim, or at the last look."""
    pairs = len(duel.now_ns)
    if pairs >= max(LOOKS):
        return True
    return pairs in LOOKS and all(decide_claim(claim, duel).status is not Status.UNDECIDED for claim in claims)


def check_run_claim(claim: Claim, now: Measurement, told: ReferenceDuel) -> Finding:
    """Check one claim about run time; where nothing was timed it is UNDECIDED, never passed over."""
    name = str(claim)
    if now.reference is None:
        detail = "cannot be checked: the case has no reference"
        return Finding(kind="claim", name=name, status=Status.INVALID, detail=detail)
    if told.duel is None:
        return Finding(kind="claim", name=name, status=Status.UNDECIDED, detail=told.why_not)
    decision = decide_claim(claim, told.duel)
    broken = decision.status is breaks(claim)
    status = Status.REGRESSED if broken else Status.SAME
    return Finding(
        kind="claim",
        name=name,
        status=Status.UNDECIDED if decision.status is Status.UNDECIDED else status,
        now=decision.now_ns,
        against=decision.baseline_ns,
        allowed=claim.factor * decision.baseline_ns,
        detail=claim.why,
        decision=decision,
        remembered=told.remembered,
    )


def _exchanged(duel: Duel) -> Duel:
    return replace(duel, now_ns=duel.baseline_ns, baseline_ns=duel.now_ns)


def _own_margin(duel: Duel) -> float:
    """The least margin: of both sides the quicker one decides what 500 ns are, so that exchanging them changes nothing."""
    quicker_ns = min(duel.call_ns(duel.now_ns), duel.call_ns(duel.baseline_ns))
    return max(MIN_MARGIN, FLOOR_NS / quicker_ns)
