"""From the counts of a loop to its verdict. No baseline is needed: each step of a sound loop is like the one before."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgate.ext.growth.model import Grown
from jaxgate.ext.loop.model import LIMITS, Loop, Seen
from jaxgate.judge.counts import Counted, count, judge_counts
from jaxgate.model.verdict import Figures, Verdict


def judge_loop(case: str, loop: Loop, seen: Seen) -> Verdict:
    """Hold each count against its limit."""
    timeline = Grown(  # where the time of each step went
        sizes=tuple(step.number for step in seen.steps),
        facts={
            name: tuple(getattr(step, name) for step in seen.steps)
            for name in ("took_ns", "wait_ns", "log_ns", "collector_ns")
        },
    )
    figures = Figures(now={}, growth={"step": timeline})
    return judge_counts(case, seen.hardware, _counted(loop, seen), time=str(seen), figures=figures)


def _counted(loop: Loop, seen: Seen) -> Iterator[Counted]:
    for name, limit in LIMITS.items():
        if found := seen.counts.get(name):
            allowed = loop.allow.get(name, limit)
            told = f"{found.what}; allowed {allowed:g}" if allowed else found.what
            yield count(name, found.value, allowed, told, found.where)
