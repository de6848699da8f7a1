"""Arguments that arrive with more to do than those of the baseline: the gate puts them in place, a call has to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jaxgate.model import ARRIVAL_FACTS, ELSEWHERE, Argument, Baseline, Finding, Measurement, Status, TimeVerdict


def describe_arrivals(now: Measurement, baseline: Baseline) -> str:
    """Name the argument whose transfer grew most, before and after, and count the others; empty if none grew."""
    worse = [
        (leaf, before)
        for leaf, before in zip(now.signature, baseline.signature, strict=False)
        if leaf.sent_bytes is not None and before.sent_bytes is not None and leaf.sent_bytes > before.sent_bytes
    ]
    if not worse:
        return ""
    leaf, before = max(worse, key=lambda pair: (pair[0].sent_bytes or 0) - (pair[1].sent_bytes or 0))
    more = f"; and {len(worse) - 1} more" if len(worse) > 1 else ""
    text = f"{leaf.path}: {before.arrival} then, {leaf.arrival} now: {leaf.sent_bytes:,} bytes are {_verb(leaf)}"
    return f"{text} at every call{more}"


def _verb(leaf: Argument) -> str:
    arrival = leaf.arrival or ""
    if arrival.endswith(ELSEWHERE):
        return "moved"
    given, taken = arrival.rpartition(" ")[2], leaf.aval.partition("[")[0]
    return "sent" if given == taken else "converted and sent"


def has_changed_arrivals(now: Measurement, baseline: Baseline) -> bool:
    """Whether arguments are given in another way than the baseline's, as far as that is known."""
    return any(
        leaf.arrival != before.arrival
        for leaf, before in zip(now.signature, baseline.signature, strict=False)
        if leaf.arrival is not None and before.arrival is not None
    )


def withdraw_identity(time: TimeVerdict, findings: Iterable[Finding]) -> TimeVerdict:
    """Withdraw SAME by identity if arguments arrive worse: a call then takes longer than its program."""
    worse = any(finding.name in ARRIVAL_FACTS and finding.status is Status.REGRESSED for finding in findings)
    if not worse or time.decision is not None or time.status is not Status.SAME:
        return time
    return replace(
        time,
        status=Status.UNDECIDED,
        reason=f"{time.reason}, but its arguments arrive otherwise, and a duel would put them in place first",
    )
