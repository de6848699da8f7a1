"""What is accepted though it is worse, in words: findings that are waived, claims that a release is known to break."""

from __future__ import annotations

from jaxgate.model.decision import Status
from jaxgate.model.verdict import Finding, Verdict
from jaxgate.model.waiver import Waiver
from jaxgate.report.units import show, show_pair, show_ratio


def waiver_note(finding: Finding) -> str:
    """Say that a finding is waived, until when, by whom and why; or why its waiver does not apply."""
    waiver = finding.waiver
    if waiver is None:
        return ""
    if finding.not_waived == "expired":
        return f"its waiver expired on {waiver.expires} ({waiver.owner}: {waiver.reason})"
    if finding.not_waived == "exceeded":
        return f"beyond its waiver, which accepts {_accepted(finding, waiver)} ({waiver.owner}: {waiver.reason})"
    return f"waived until {waiver.expires} by {waiver.owner}: {waiver.reason}"


def waiver_notes(verdict: Verdict, *, without: Finding | None = None) -> list[str]:
    """One note for each finding that a waiver speaks of; the note of ``without`` stands elsewhere."""
    return [
        f"{waived_name(finding)}: {waiver_note(finding)}"
        for finding in verdict.findings
        if finding.waiver is not None and finding is not without
    ]


def waived_name(finding: Finding) -> str:
    """What a finding is called where several stand in one line."""
    if finding.kind == "time":
        return "time"
    return f"claim {finding.name}" if finding.kind == "claim" else finding.name


def has_waived(verdict: Verdict) -> bool:
    """Whether a waiver covers any finding of a case."""
    return any(finding.status is Status.WAIVED for finding in verdict.findings)


def _accepted(finding: Finding, waiver: Waiver) -> str:
    if finding.kind == "time":
        return f"an upper bound of {waiver.up_to:g} × the baseline"
    if finding.decision is not None:
        bound = "an upper" if finding.decision.status is Status.SLOWER else "a lower"
        return f"{bound} bound of {waiver.up_to:g} × the reference"
    way = "up" if (finding.now or 0) > (finding.allowed or 0) else "down"
    full = f"{waiver.up_to:,.{0 if waiver.up_to.is_integer() else 3}f}"  # three digits could look like today's value
    unit = show(finding.name.split(" ")[0], 1.0).partition(" ")[2]
    return f"{way} to {full} {unit}".strip()


def expected_failures(verdict: Verdict) -> list[str]:
    """One note for each claim that is broken as expected: its numbers, the release and the reason."""
    notes = []
    for finding in verdict.findings:
        if finding.status is Status.EXPECTED:
            now, against = show_pair(finding.name.split(" ")[0], finding.now, finding.against)
            ratio = show_ratio(finding.now, finding.against)
            share = f" = {ratio}" if ratio else ""
            notes.append(f"expected: {finding.name} is broken, {now} against {against}{share} ({finding.known_break})")
    return notes


def unexpected_passes(verdict: Verdict) -> list[str]:
    """One note for each claim that holds although the release is known to break it."""
    return [
        f"holds unexpectedly: {finding.name} ({finding.known_break}); remove its known_break"
        for finding in verdict.findings
        if finding.known_break is not None and finding.status is Status.SAME
    ]
