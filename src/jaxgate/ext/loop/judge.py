"""From the counts of a loop to its verdict. No baseline is needed: each step of a sound loop is like the one before."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgate.ext.loop.model import LIMITS, Count, Loop, Seen
from jaxgate.judge.order import is_red
from jaxgate.model.decision import Status
from jaxgate.model.verdict import Cause, Finding, TimeVerdict, Verdict


def judge_loop(case: str, loop: Loop, seen: Seen) -> Verdict:
    """Hold each count against its limit."""
    findings = sorted(_findings(loop, seen), key=lambda one: one.status is Status.SAME)
    status = findings[0].status if findings else Status.SAME
    red = [one.name for one in findings if one.status is not Status.SAME]
    causes = [Cause(text=seen.counts[name].where, explains=frozenset({name}), root=True) for name in red[:1]]
    return Verdict(
        case=case,
        hardware=seen.hardware,
        status=status,
        fails=is_red(status, strict=False),
        findings=tuple(findings),
        time=TimeVerdict(status=Status.SAME, reason=str(seen)),
        causes=tuple(one for one in causes if one.text),
    )


def _findings(loop: Loop, seen: Seen) -> Iterator[Finding]:
    for name, limit in LIMITS.items():
        count = seen.counts.get(name)
        if count is None:
            continue
        allowed = loop.allow.get(name, limit)
        if count.value <= allowed:
            yield Finding(kind="claim", name=f"{name} <= {allowed:g}", status=Status.SAME)
        else:
            yield Finding(kind="claim", name=name, status=Status.REGRESSED, detail=_told(name, count, allowed))


def _told(name: str, count: Count, allowed: float) -> str:
    """A count in words; where something of it is allowed, how much."""
    return f"{count.what}; allowed {allowed:g}" if allowed and name in LIMITS else count.what
