"""Which finding decides, and which of them fail a test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxgate.model.decision import ALWAYS_FAIL, Status
from jaxgate.model.verdict import Finding, TimeVerdict, Verdict

FAIL_IF_STRICT = frozenset({Status.NO_BASELINE, Status.STALE_BASELINE})

MEMORY = frozenset({"temp_bytes", "argument_bytes", "output_bytes", "peak_bytes", "state_bytes"})

_SEVERITY = {status: rank for rank, status in enumerate(Status)}


def is_red(status: Status, *, strict: bool) -> bool:
    """Whether a verdict fails its test."""
    return status in ALWAYS_FAIL or (strict and status in FAIL_IF_STRICT)


def conclude(
    verdict: Verdict, findings: Sequence[Finding], time: TimeVerdict | None = None, *, strict: bool
) -> Verdict:
    """The verdict that follows from its findings: status, whether it fails, and whether it accuses the machine."""
    time = verdict.time if time is None else time
    status = severest((*(finding.status for finding in findings), time.status))
    red = [finding for finding in findings if is_red(finding.status, strict=strict)]
    return replace(
        verdict,
        status=status,
        fails=is_red(status, strict=strict),
        findings=worst_first(findings),
        time=time,
        accuses_machine=bool(red) and all(finding.blames_machine for finding in red),
    )


def waits_for_confirmation(verdict: Verdict) -> bool:
    """Whether only the clocks of one process make it red: a slow-down, a phase, or claims about run time."""
    red = [finding for finding in verdict.findings if finding.status in ALWAYS_FAIL]
    return bool(red) and all(finding.kind in ("time", "phase") or finding.decision is not None for finding in red)


def has_red_phase(verdict: Verdict) -> bool:
    """Whether a phase is worse than its baseline, and no waiver covers it."""
    return any(finding.kind == "phase" and finding.status is Status.REGRESSED for finding in verdict.findings)


def severest(statuses: Iterable[Status]) -> Status:
    """The status that decides."""
    return max(statuses, key=_SEVERITY.__getitem__)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity; of two alike the fact comes before the claim that it breaks, clocks last."""

    def rank(finding: Finding) -> tuple[int, bool, bool]:
        by_clock = finding.decision is not None or finding.kind == "phase"
        return -_SEVERITY[finding.status], finding.kind != "fact", by_clock

    return tuple(sorted(findings, key=rank))


def memory_decides(verdict: Verdict) -> bool:
    """Whether a quantity of memory is among what is red, so that the buffers of the program are worth reading."""
    return bool(red_quantities(verdict.findings) & MEMORY)


def red_quantities(findings: Iterable[Finding]) -> frozenset[str]:
    """What got worse, or is what a broken claim is about."""
    return frozenset(
        finding.name.partition(" ")[0] for finding in findings if finding.status in (Status.REGRESSED, Status.SLOWER)
    )
