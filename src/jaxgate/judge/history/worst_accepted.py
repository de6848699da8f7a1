"""What a refresh accepted: the figure of the new baseline that is worst beside the old one, within its tolerance or not."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model import Finding, Status, Verdict


def worst_accepted(verdict: Verdict) -> Finding | None:
    """The figure that a refreshed case lost most in; ``None`` if it lost in none.

    What decided the verdict comes first. Else it is the fact, or the time where a duel speaks of it, that moved by the
    largest share: each may be within what one gate lets pass, and the sum of many such is a drift.
    """
    worst = verdict.worst
    if worst is not None and verdict.status in (Status.REGRESSED, Status.SLOWER):
        return worst
    found = [(lost, place, finding) for place, (lost, finding) in enumerate(_lost(verdict))]
    return max(found, key=lambda one: (one[0], -one[1]))[2] if found else None


def _lost(verdict: Verdict) -> Iterator[tuple[float, Finding]]:
    """Each figure that is worse, with the factor."""
    decision = verdict.time.decision
    timed = [finding for finding in verdict.findings if finding.kind == "time"]
    if decision is not None and decision.ratio > 1:
        yield from ((decision.ratio, finding) for finding in timed)
    known = {finding.name: finding for finding in verdict.findings if finding.kind == "fact"}
    for policy in (*POLICIES, *ARRIVAL_POLICIES):
        finding = known.get(policy.name)
        if finding is None or finding.now is None or finding.against is None:
            continue
        less = policy.better == "higher"
        before, now = (finding.now, finding.against) if less else (finding.against, finding.now)
        if now > before:
            yield now / before if before else inf, finding
