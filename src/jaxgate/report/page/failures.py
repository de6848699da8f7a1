"""The cases that failed, in words that stand on the page without a script: text, suspects, difference, buffers, figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxgate.model import CaseRecord
from jaxgate.report import show, show_pair, show_ratio
from jaxgate.report.page.case_data import TextBudget
from jaxgate.report.page.case_table import Row, finding_text
from jaxgate.report.page.parts import Cell, Column, Table

MOST = 50
"""Of them: the others open from the table."""
OPEN = 3
"""The first stand open."""
_NO_PHASES = frozenset({"trace_wait_ns", "yardstick_ns"})
"""They measure the machine, and always move."""


def failure_values(rows: Sequence[Row], budget: TextBudget) -> dict[str, Any]:
    """What the template of the failures is given.

    Args:
        rows: Of the cases that failed.
        budget: Room for their texts.
    """
    shown = [_failure(row, budget) for row in rows[:MOST]]
    return {"failures": shown, "more": len(rows) - len(shown), "open": OPEN}


def _failure(row: Row, budget: TextBudget) -> dict[str, Any]:
    case = row.case
    return {
        "row": row,
        "text": budget.text(case.text) or "\n".join(map(finding_text, case.findings)),
        "causes": case.causes,
        "operations": operations_table(case),
        "changes": [(_sign(line), line) for line in budget.lines(case.changes)],
        "buffers": budget.lines(case.allocations),
        "table": moved_table(case),
    }


def _sign(line: str) -> str:
    """What a line of a difference is: ``add``, ``gone``, or nothing for what stays."""
    return {"+": "add", "-": "gone"}.get(line.lstrip()[:1], "")


def operations_table(case: CaseRecord) -> Table | None:
    """The operations that a profile blames; ``None`` without a profile."""
    rows: list[list[Cell | str]] = [
        [
            f"gap after {row.name}" if row.gap else row.name,
            row.line or "–",
            *(Cell(text=show("run_ns", time), order=time) for time in (row.now_ns, row.other_ns)),
            Cell(text=f"+{show('run_ns', row.now_ns - row.other_ns)}", order=row.now_ns - row.other_ns),
        ]
        for row in case.operations
    ]
    columns = [Column(title="operation"), Column(title="line")]
    columns += [Column(title=title, number=True) for title in ("now", "other side", "longer by")]
    return Table(caption=f"Operations of {case.case} that take longer", columns=columns, rows=rows) if rows else None


def moved_table(case: CaseRecord) -> Table | None:
    """The figures that are not the baseline's; ``None`` if there is none."""
    figures = case.figures
    if figures is None:
        return None
    with_reference = bool(figures.reference)
    rows: list[list[Cell | str]] = []
    for name, now in figures.now.items():
        stored = figures.stored.get(name)
        if stored is None or stored == now or name in _NO_PHASES:
            continue
        left, right = show_pair(name, now, stored)
        reference = figures.reference.get(name)
        cells: list[Cell | str] = [name, Cell(text=left, order=now), Cell(text=right, order=stored)]
        cells.append(show_ratio(now, stored))
        if with_reference:
            cells.append(Cell(text="–" if reference is None else show(name, reference), order=reference))
        rows.append(cells)
    titles = ("now", "baseline", "ratio", "reference") if with_reference else ("now", "baseline", "ratio")
    columns = [Column(title="quantity"), *(Column(title=one, number=True) for one in titles)]
    return Table(caption=f"What moved in {case.case}", columns=columns, rows=rows) if rows else None
