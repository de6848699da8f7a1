"""Which finding decides, and which of them fail a test."""

from __future__ import annotations

from collections.abc import Iterable

from jaxgate.model import Finding, Status, Verdict

ALWAYS_FAIL = frozenset({Status.RESOURCE_EXHAUSTED, Status.INVALID, Status.REGRESSED, Status.SLOWER})
FAIL_IF_STRICT = frozenset({Status.NO_BASELINE, Status.STALE_BASELINE})

MEMORY = frozenset({"temp_bytes", "argument_bytes", "output_bytes", "peak_bytes", "state_bytes"})

_SEVERITY = {status: rank for rank, status in enumerate(Status)}


def is_red(status: Status, *, strict: bool) -> bool:
    """Whether a verdict fails its test."""
    return status in ALWAYS_FAIL or (strict and status in FAIL_IF_STRICT)


def waits_for_confirmation(verdict: Verdict) -> bool:
    """Whether nothing but the clocks of one process makes it red: a slow-down, a phase, or claims about run time."""
    red = [finding for finding in verdict.findings if finding.status in ALWAYS_FAIL]
    return bool(red) and all(finding.kind in ("time", "phase") or finding.decision is not None for finding in red)


def has_red_phase(verdict: Verdict) -> bool:
    """Whether a phase is worse than its baseline, and no waiver covers it."""
    return any(finding.kind == "phase" and finding.status is Status.REGRESSED for finding in verdict.findings)


def severest(statuses: Iterable[Status]) -> Status:
    """The status that decides."""
    return max(statuses, key=_SEVERITY.__getitem__)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity; of two alike the fact first, which says more than the claim it breaks; clocks last."""

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
