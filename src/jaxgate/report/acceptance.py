"""One case for somebody who is to accept it or not: its verdict, the figures that decide, and the culprit."""

from __future__ import annotations

from jaxgate.model.decision import Status
from jaxgate.model.verdict import Verdict
from jaxgate.report.printable import printable_line
from jaxgate.report.summary import moved
from jaxgate.report.text import describe_finding

MAX_FIGURES = 4
_REFUSED = frozenset({Status.INVALID, Status.RESOURCE_EXHAUSTED, Status.REGRESSED, Status.WAIVED})
_NEVER = frozenset({Status.INVALID, Status.RESOURCE_EXHAUSTED})


def review_lines(verdict: Verdict) -> list[str]:
    """The verdict, what moved now and before, and what made it worse."""
    lines = [f"{verdict.status}  {verdict.case}"]
    figures = moved(verdict)
    if not figures and verdict.worst is not None:
        figures = [describe_finding(verdict.worst)]
    lines += [f"  {figure}" for figure in figures[:MAX_FIGURES]]
    if len(figures) > MAX_FIGURES:
        lines.append(f"  and {len(figures) - MAX_FIGURES} more")
    if verdict.causes:
        lines.append(f"  culprit: {verdict.causes[0]}")
    return [printable_line(line) for line in lines]


def why_not_acceptable(verdict: Verdict) -> str:
    """Why no baseline can make a case right: its first broken claim, or what could not be judged; empty if one can.

    A claim that is waived is broken all the same.
    """
    for finding in verdict.findings:
        if finding.status in _NEVER or (finding.kind in ("claim", "case", "drift") and finding.status in _REFUSED):
            return describe_finding(finding)
    return ""
