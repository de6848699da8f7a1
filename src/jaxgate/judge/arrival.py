"""Arguments that arrive with more to do than those of the baseline: the gate puts them in place, a call has to."""

from __future__ import annotations

from jaxgate.model import ELSEWHERE, Argument, Baseline, Measurement


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
