"""A calibration as a Markdown table: the same text in the terminal and in the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from jaxgate.model.calibration import CaseCalibration
from jaxgate.report.units import show


def calibration_table(rows: Sequence[CaseCalibration], *, bound: float) -> str:
    """One row for each case, and the rates of the whole.

    Args:
        rows: The cases.
        bound: 95 % upper bound of the rate of confirmed false alarms.
    """
    plants = sorted(rows[0].seen) if rows else []
    head = ["case", "call", "duels", "alarms", "confirmed", "undecided", "margin", "sees"]
    head += [f"+{plant:.0%}" for plant in plants] + ["cost"]
    body = [
        [
            row.case,
            show("run_ns", row.call_ns),
            str(row.duels),
            str(row.alarms),
            str(row.confirmed),
            f"{row.undecided / row.duels:.0%}",
            f"{row.margin:.1%}",
            f"{row.sees:.1%}",
            *(f"{row.seen[plant]:.0%}" for plant in plants),
            f"{row.cost_s:.1f} s",
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(cells, widths, strict=True)) + " |"
        for cells in [head, *body]
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    duels, alarms, confirmed = (sum(getattr(row, name) for row in rows) for name in ("duels", "alarms", "confirmed"))
    lines.append("")
    lines.append(
        f"{duels} duels of identical programs: {alarms} false alarms at the first stage, {confirmed} confirmed in "
        f"fresh processes; with 95 % confidence the rate of confirmed false alarms is below {bound:.2%}."
    )
    return "\n".join(lines)
