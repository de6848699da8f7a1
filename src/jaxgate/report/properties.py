"""A verdict as named values, for reports of whole test suites: JUnit's properties, and whoever reads pytest's reports."""

from __future__ import annotations

from jaxgate.model import Verdict

PREFIX = "jaxgate"


def verdict_properties(verdict: Verdict) -> list[tuple[str, str]]:
    """The values, in an order that stays: name and text.

    Times are in nanoseconds and ratios are today's to the baseline's; a value that is not known is left out.
    """
    decision, worst = verdict.time.decision, verdict.worst
    found: dict[str, object] = {
        "case": verdict.case,
        "status": verdict.status,
        "hardware": verdict.hardware.slug if verdict.hardware else None,
        "run_ns": None if verdict.run_ns is None else round(verdict.run_ns),
        "time": verdict.time.status,
        "ratio": None if decision is None else f"{decision.ratio:.4f}",
        "sees": None if decision is None else f"{decision.sees:.4f}",
        "worst": worst.name if worst is not None and verdict.fails else None,
        "now": worst.now if worst is not None and verdict.fails else None,
        "against": worst.against if worst is not None and verdict.fails else None,
        "culprit": str(verdict.causes[0]) if verdict.causes else None,
        "bundle": verdict.capture.folder if verdict.capture is not None else None,
        "recorded": verdict.recorded or None,
    }
    return [(f"{PREFIX}.{name}", str(value)) for name, value in found.items() if value is not None]
