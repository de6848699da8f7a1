"""From the counts of a loop to its verdict. No baseline is needed: each step of a sound loop is like the one before."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgate.ext.growth.model import Grown
from jaxgate.ext.loop.model import LIMITS, Loop, Seen
from jaxgate.judge.order import is_red
from jaxgate.model.decision import Status
from jaxgate.model.verdict import Cause, Figures, Finding, TimeVerdict, Verdict


def judge_loop(case: str, loop: Loop, seen: Seen) -> Verdict:
    """Hold each count against its limit."""
    findings = sorted(_findings(loop, seen), key=lambda one: one.status is Status.SAME)
    worst = findings[0]
    where = "" if worst.status is Status.SAME else seen.counts[worst.name].where
    return Verdict(
        case=case,
        hardware=seen.hardware,
        status=worst.status,
        fails=is_red(worst.status, strict=False),
        findings=tuple(findings),
        time=TimeVerdict(status=Status.SAME, reason=str(seen)),
        figures=Figures(now={}, growth={"step": _timeline(seen)}),
        causes=(Cause(text=where, explains=frozenset({worst.name}), root=True),) if where else (),
    )


def _timeline(seen: Seen) -> Grown:
    """Where the time of each step went."""
    names = ("took_ns", "wait_ns", "log_ns", "collector_ns")
    return Grown(
        sizes=tuple(step.number for step in seen.steps),
        facts={name: tuple(getattr(step, name) for step in seen.steps) for name in names},
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
            limit_told = f"; allowed {allowed:g}" if allowed else ""
            yield Finding(kind="claim", name=name, status=Status.REGRESSED, detail=f"{count.what}{limit_told}")
