"""A calibration as tables, in Markdown that is aligned for a terminal, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from ci.calibrate.rates import CaseRates, Plant, rate_bound
from jaxgate.model.words import plural
from jaxgate.report.units import show

Rows = list[list[str]]

PLANTED = "Planted slow-downs called SLOWER: scaled times / real extra work (its measured size):"


def tables(rows: Sequence[CaseRates], failed: Mapping[str, str]) -> str:
    """The rates of some cases, and which cases could not be calibrated, with the reason."""
    parts = []
    if rows:
        parts = [_table(_identical(rows)), PLANTED, _table(_planted(rows)), *_missing(rows), _rates(rows)]
    return "\n\n".join([*parts, *(f"{case} could not be calibrated: {reason}" for case, reason in failed.items())])


def _identical(rows: Sequence[CaseRates]) -> Rows:
    """What duels of identical programs said."""
    head = ["case", "call", "duels", "alarms", "confirmed", "undec.", "margin", "sees", "floor", "cost"]
    body = [
        [
            row.case,
            show("run_ns", row.call_ns),
            *map(str, (row.duels, row.alarms, row.confirmed)),
            f"{row.undecided / row.duels:.0%}",
            *(f"{share:.1%}" for share in (row.margin, row.sees, row.floor)),
            f"{row.cost_s:.1f} s",
        ]
        for row in rows
    ]
    return [head, *body]


def _planted(rows: Sequence[CaseRates]) -> Rows:
    """What was planted, and what of it was seen."""
    head = ["case", *(f"+{plant.share:.0%}" for plant in rows[0].plants)]
    return [head, *([row.case, *map(_plant, row.plants)] for row in rows)]


def _plant(plant: Plant) -> str:
    """``92/80% (5.3%)``: scaled, real, and what the real one was."""
    if not plant.ratios:
        return f"{plant.scaled:.0%} / –"
    seen, really = plant.slower / len(plant.ratios), median(plant.ratios) - 1
    return f"{100 * plant.scaled:.0f}/{seen:.0%} ({really:.1%})"


def _missing(rows: Sequence[CaseRates]) -> list[str]:
    """One line for each case and reason why extra work is missing."""
    lines = []
    for row in rows:
        for why in dict.fromkeys(plant.why_not for plant in row.plants if plant.why_not):
            sizes = ", ".join(f"{plant.share:.0%}" for plant in row.plants if plant.why_not == why)
            lines.append(f"{row.case}, extra work of {sizes}: {why}")
    return lines


def _rates(rows: Sequence[CaseRates]) -> str:
    """The rates of all cases together, and what a duel costs in a run that gates."""
    duels, alarms, confirmed, pairs = (
        sum(getattr(row, name) for row in rows) for name in ("duels", "alarms", "confirmed", "executables")
    )
    mean_s = sum(row.cost_s * row.duels for row in rows) / duels
    return (
        f"{plural(duels, 'duel', spec=',')} of identical programs in {plural(pairs, 'pair', spec=',')} of executables: "
        f"{plural(alarms, 'false alarm', spec=',')} at the first stage, {confirmed} confirmed\nin fresh processes; "
        f"with 95 % confidence the rate of confirmed false alarms is below {rate_bound(confirmed, duels):.2%}.\n"
        f"A duel costs {mean_s:.1f} s on average, looks allowed; calibrating took {sum(row.took_s for row in rows):,.0f} s."
    )


def _table(rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |" for cells in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
