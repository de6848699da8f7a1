"""What a release is known to break, in words: expected failures, and claims that hold against expectation."""

from __future__ import annotations

from jaxgate.model import Finding, Status, Verdict
from jaxgate.report.units import show_pair, show_ratio


def expected_failures(verdict: Verdict) -> list[str]:
    """One note for each claim that is broken as expected: its numbers, the release and the reason."""
    return [_broken(finding) for finding in verdict.findings if finding.status is Status.EXPECTED]


def unexpected_passes(verdict: Verdict) -> list[str]:
    """One note for each claim that holds although the release is known to break it."""
    return [
        f"holds unexpectedly: {finding.name} ({finding.known_break}); remove its known_break"
        for finding in verdict.findings
        if finding.known_break is not None and finding.status is Status.SAME
    ]


def _broken(finding: Finding) -> str:
    now, against = show_pair(finding.name.split(" ")[0], finding.now, finding.against)
    share = show_ratio(finding.now, finding.against)
    return f"expected: {finding.name} is broken, {now} against {against}{' = ' if share else ''}{share} ({finding.known_break})"
