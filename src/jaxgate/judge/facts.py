"""Facts of today against facts of the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model import (
    ARRIVAL_FACTS,
    EACH_TURN,
    Baseline,
    FactPolicy,
    Finding,
    MeasuredProgram,
    Measurement,
    Status,
    Tolerance,
)

_COUNTED_IN = {
    "matmul_flops": "matmuls",
    "collectives": "collectives",
    "collective_bytes": "collectives",
    "widened_bytes": "widened",
}
"""Facts that count loops by their length, and the histograms that tell of which length nothing is known."""
_UNEQUAL = (
    "work moved into or out of a loop of unknown length, which counts as one turn: it cannot be compared; look at it, "
    "and record it again"
)


def compare_facts(now: Measurement, baseline: Baseline, tolerances: Iterable[Tolerance] = ()) -> Iterator[Finding]:
    """Hold every fact against its baseline.

    A fact that the baseline has and today's measurement lacks is INVALID: a metric that vanished must not
    pass. One that only today's measurement has is not judged yet, and said so.

    Args:
        now: Today's measurement.
        baseline: What it is held against.
        tolerances: The workload's own, which take the place of the policy's.
    """
    own = {tolerance.fact: tolerance for tolerance in tolerances}
    for policy in (*POLICIES, *ARRIVAL_POLICIES):
        today, before = (_value(side, policy.name) for side in (now, baseline))
        if before is None:
            if today is not None:
                detail = "the baseline does not have it: not judged until it is recorded again"
                yield Finding(kind="fact", name=policy.name, status=Status.SAME, now=today, detail=detail)
            continue
        if today is None:
            why = now.unknown.get(policy.name)
            yield Finding(
                kind="fact",
                name=policy.name,
                status=Status.INVALID,
                against=before,
                detail="the baseline has it, today's measurement does not: " + (why or "it cannot be compared"),
            )
            continue
        if policy.name in _COUNTED_IN and _changed_loops(now, baseline, _COUNTED_IN[policy.name]):
            yield Finding(
                kind="fact", name=policy.name, status=Status.INVALID, now=today, against=before, detail=_UNEQUAL
            )
            continue
        yield _judged(policy, today, before, own.get(policy.name))


def _value(side: MeasuredProgram, name: str) -> int | None:
    found: int | None = getattr(side if name in ARRIVAL_FACTS else side.facts, name)
    return found


def _changed_loops(now: Measurement, baseline: Baseline, histogram: str) -> bool:
    """Whether there is less in one kind of loops and more in the other: a count of one turn against that of all."""
    more = Counter(getattr(now, histogram))
    more.subtract(getattr(baseline, histogram))
    in_turns = sum(count for label, count in more.items() if label.endswith(EACH_TURN))
    return in_turns * (more.total() - in_turns) < 0


def _judged(policy: FactPolicy, today: int, before: int, own: Tolerance | None) -> Finding:
    if own is not None:
        policy = replace(policy, relative=own.relative, absolute=own.absolute)
    if policy.is_worse(today, before):
        status = Status.REGRESSED
    elif policy.is_better(today, before):
        status = Status.IMPROVED
    else:
        status = Status.SAME
    return Finding(
        kind="fact",
        name=policy.name,
        status=status,
        now=today,
        against=before,
        allowed=policy.worst_allowed(before),
        detail="" if own is None else f"by this workload's own tolerance: {own.why}",
    )
