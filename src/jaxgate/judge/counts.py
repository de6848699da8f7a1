"""A verdict from counts that are held against limits, without a baseline: of loops, of starts of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jaxgate.judge.order import conclude
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.verdict import Cause, Figures, Finding, TimeVerdict, Verdict

Counted = tuple[Finding, str]
"""A count that was held against its limit, and the culprit where it is beyond: a line, a function."""


def count(name: str, found: float, allowed: float, told: str, where: str = "") -> Counted:
    """Hold a count against its limit; ``told`` says what is beyond it, ``where`` what makes it so."""
    if found <= allowed:
        return Finding(kind="claim", name=f"{name} <= {allowed:g}", status=Status.SAME), ""
    return Finding(kind="claim", name=name, status=Status.REGRESSED, detail=told), where


def judge_counts(
    case: str, hardware: HardwareKey, found: Iterable[Counted], *, time: str, figures: Figures | None = None
) -> Verdict:
    """The verdict of at least one count, those that explain others first; ``time`` is for the eye."""
    counts = list(found)
    unjudged = Verdict(
        case=case,
        hardware=hardware,
        status=Status.SAME,
        fails=False,
        findings=(),
        time=TimeVerdict(status=Status.SAME, reason=time),
        figures=figures,
    )
    verdict = conclude(unjudged, [finding for finding, _ in counts], strict=False)
    worst = verdict.findings[0]
    where = next(where for finding, where in counts if finding is worst)
    return replace(verdict, causes=(Cause(text=where, explains=frozenset({worst.name}), root=True),) if where else ())
