"""Phases of today against those of the baseline: tracing, lowering, compiling, the first call, Python's part of a call.

They are numbers from another day, so they gate with a wide relative and an absolute floor, scaled by how much slower
this machine runs plain Python now, on the hardware that recorded them only, and not before fresh processes agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxgate.judge.difference import Difference
from jaxgate.judge.order import worst_first
from jaxgate.judge.policy import STORED_PHASE_POLICIES
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.decision import Status
from jaxgate.model.numbers import Phases
from jaxgate.model.policy import FactPolicy
from jaxgate.model.verdict import Finding

STILL_OPEN = frozenset({"trace_ns", "trace_wait_ns", "dispatch_ns"})
"""Phases that an identical program in the same environment leaves open: those of the Python that leads to it."""
AROUND_PROGRAMS = frozenset({"host_ns", "first_call_ns"})
"""Further phases that identical programs leave open, where the plain Python around them changed."""
IMPORTS_NS = 3_000_000_000
"""Further time that the first call of plain Python may take, for imports that no test before it has made."""


def compare_phases(difference: Difference, record: StoredBaseline) -> Iterator[Finding]:
    """Hold every phase against the baseline's, where it was recorded on this hardware with as many cores."""
    now, baseline = difference.now, difference.baseline
    if record.borrowed or not (difference.same_hardware and difference.same_cores):
        return
    identical = not difference.why_not_identical
    slowness = now.phases.slower_than(baseline.phases)
    left_open = STILL_OPEN | (AROUND_PROGRAMS if now.eager and difference.same_source is not True else frozenset())
    for policy in STORED_PHASE_POLICIES:
        today, before = getattr(now.phases, policy.name), getattr(baseline.phases, policy.name)
        if today is None or before is None or (identical and policy.name not in left_open):
            continue  # it came out of a cache, the backend does not report it, or nothing can have changed it
        if policy.other_within(now.environment, baseline.environment):
            continue
        allowed = _worst_allowed(policy, baseline.phases) * slowness
        better = policy.best_expected(before)
        status = Status.REGRESSED if today > allowed else Status.IMPROVED if today < better else Status.SAME
        busy = f"this machine runs Python {slowness:.2f} × slower than when it was recorded" if slowness > 1 else ""
        yield Finding(
            kind="phase", name=policy.name, status=status, now=today, against=before, allowed=allowed, detail=busy
        )


def _worst_allowed(policy: FactPolicy, before: Phases) -> float:
    """The limit of a phase. That of ``trace_wait_ns`` grows with ``trace_ns``: on a busy machine a longer trace waits longer."""
    allowed = policy.worst_allowed(getattr(before, policy.name))
    if policy.name == "first_call_ns" and before.lower_ns is None:  # of plain Python
        return allowed + IMPORTS_NS
    return allowed + policy.relative * (before.trace_ns or 0) if policy.name == "trace_wait_ns" else allowed


def settle_phases(
    findings: Sequence[Finding], before: Phases, launches: Sequence[Phases | str], *, wanted: int
) -> tuple[Finding, ...]:
    """Judge red phases again after fresh processes measured them. Pure.

    Returns:
        The findings: a phase stays REGRESSED if every process is beyond what is allowed, is UNDECIDED if one is not,
        and INVALID if one could not be run.
    """
    return worst_first(
        _settled(finding, before, launches, wanted)
        if finding.kind == "phase" and finding.status is Status.REGRESSED
        else finding
        for finding in findings
    )


def _settled(finding: Finding, before: Phases, launches: Sequence[Phases | str], wanted: int) -> Finding:
    policy = next(policy for policy in STORED_PHASE_POLICIES if policy.name == finding.name)
    for number, launch in enumerate(launches, 1):
        if isinstance(launch, str):
            return replace(finding, status=Status.INVALID, detail=f"it could not be confirmed: {launch}")
        again = getattr(launch, finding.name)
        if again is None and policy.unsteady:
            detail = f"it could not be timed in fresh process {number} of {wanted}"
            return replace(finding, status=Status.UNDECIDED, detail=detail)
        if again is None:
            return replace(finding, status=Status.INVALID, detail="it could not be confirmed: it came out of a cache")
        if again <= _worst_allowed(policy, before) * launch.slower_than(before):
            detail = f"it was not confirmed by fresh process {number} of {wanted}"
            return replace(finding, status=Status.UNDECIDED, detail=detail)
    if len(launches) < wanted:
        return replace(
            finding, status=Status.INVALID, detail="it could not be confirmed: no fresh process says anything"
        )
    return replace(finding, detail=f"confirmed in {wanted} fresh processes")
