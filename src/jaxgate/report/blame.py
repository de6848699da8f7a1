"""Who is to blame, in the failure text: a fact that was seen to move, or the operations that a profile shows."""

from __future__ import annotations

from jaxgate.model import Capture, OpTable, Status, Verdict
from jaxgate.report.optable import culprit_rows

_RED = frozenset({Status.INVALID, Status.RESOURCE_EXHAUSTED, Status.REGRESSED, Status.SLOWER})


def blame(verdict: Verdict, by_facts: str) -> list[tuple[str, str]]:
    """Rows of a failure text, each a label and its text: the culprit first, then the other account, then the bundle.

    Args:
        verdict: The verdict.
        by_facts: What the facts say.
    """
    table = None if verdict.capture is None else verdict.capture.table
    rows = [] if table is None else culprit_rows(table)
    leads = bool(rows) and table is not None and _leads(verdict, table)
    shown = [("culprit" if leads else "profile", rows[0]), *(("", row) for row in rows[1:])] if rows else []
    told = [*shown, ("program", by_facts)] if leads else [("culprit", by_facts), *shown]
    return told if verdict.capture is None else [*told, ("bundle", _bundle(verdict.capture))]


def _leads(verdict: Verdict, table: OpTable) -> bool:
    """Whether operations are the culprit: a duel found the case slower than what was profiled beside it.

    Where a fact is red too, and was seen to move, that leads; a guess gives way.
    """
    if verdict.time.status is not Status.SLOWER or table.other != "baseline":
        return False
    red = [finding for finding in verdict.findings if finding.status in _RED]
    only_time = bool(red) and all(finding.kind == "time" for finding in red)
    return only_time or not (verdict.causes and verdict.causes[0].sure)


def _bundle(capture: Capture) -> str:
    """Where it is, and why something is missing in it."""
    where = f"{capture.folder}/report.md" if capture.folder else "none"
    missing = "; ".join(capture.notes) if capture.table is None or capture.incomplete else ""
    return f"{where} ({missing})" if missing else where
