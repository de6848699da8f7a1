"""A calibration as tables: aligned for the terminal, in Markdown for documents. Both show the same cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxgate.model import CaseCalibration, Plant, plural
from jaxgate.report.table import aligned
from jaxgate.report.units import show

Rows = list[list[str]]

PLANTS_TITLE = "Planted slow-downs called SLOWER: scaled times / real extra work (its measured size)"


def calibration_text(rows: Sequence[CaseCalibration], *, bound: float, failed: Mapping[str, str]) -> str:
    """The tables for the terminal: under 120 columns, if the names of the cases leave room.

    Args:
        rows: The cases.
        bound: 95 % upper bound of the rate of confirmed false alarms.
        failed: Cases that could not be calibrated, with the reason.
    """
    parts = []
    if rows:
        parts = [
            _aligned(_identical(rows)),
            PLANTS_TITLE,
            _aligned(_planted(rows)),
            *_reasons(rows),
            _rates(rows, bound),
        ]
    return "\n".join([*parts, *_failures(failed), *_cost(rows)])


def calibration_markdown(
    rows: Sequence[CaseCalibration], *, bound: float, failed: Mapping[str, str], surroundings: Sequence[str] = ()
) -> str:
    """The same as Markdown.

    Args:
        rows: The cases.
        bound: 95 % upper bound of the rate of confirmed false alarms.
        failed: Cases that could not be calibrated, with the reason.
        surroundings: Where and when it was measured, a line each.
    """
    parts = ["# Calibration", *surroundings]
    if rows:
        parts += [_markdown(_identical(rows)), f"{PLANTS_TITLE}:", _markdown(_planted(rows)), *_reasons(rows)]
        parts += [_rates(rows, bound)]
    return "\n\n".join([*parts, *_failures(failed), *_cost(rows)]) + "\n"


def _identical(rows: Sequence[CaseCalibration]) -> Rows:
    """What duels of identical programs said."""
    head = ["case", "call", "duels", "alarms", "confirmed", "undec.", "margin", "sees", "floor", "cost"]
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
            f"{row.floor:.1%}",
            f"{row.cost_s:.1f} s",
        ]
        for row in rows
    ]
    return [head, *body]


def _planted(rows: Sequence[CaseCalibration]) -> Rows:
    """What was planted, and what of it was seen."""
    head = ["case", *(f"+{plant.share:.0%}" for plant in rows[0].plants)]
    return [head, *([row.case, *map(_plant, row.plants)] for row in rows)]


def _plant(plant: Plant) -> str:
    """``92/80% (5.3%)``: scaled, real, and what the real one was."""
    if plant.seen is None or plant.really is None:
        return f"{plant.scaled:.0%} / –"
    return f"{100 * plant.scaled:.0f}/{plant.seen:.0%} ({plant.really:.1%})"


def _reasons(rows: Sequence[CaseCalibration]) -> list[str]:
    """One line for each case and reason why extra work is missing."""
    lines = []
    for row in rows:
        sizes: dict[str, list[str]] = {}
        for plant in row.plants:
            if plant.why_not:
                sizes.setdefault(plant.why_not, []).append(f"{plant.share:.0%}")
        lines += [f"{row.case}, extra work of {', '.join(found)}: {why}" for why, found in sizes.items()]
    return lines


def _rates(rows: Sequence[CaseCalibration], bound: float) -> str:
    duels, alarms, confirmed = (sum(getattr(row, name) for row in rows) for name in ("duels", "alarms", "confirmed"))
    pairs = sum(row.executables for row in rows)
    return (
        f"{plural(duels, 'duel', spec=',')} of identical programs in {plural(pairs, 'pair', spec=',')} of executables: "
        f"{plural(alarms, 'false alarm', spec=',')} at the first stage, {confirmed} confirmed\nin fresh processes; with 95 % confidence the rate of confirmed false alarms "
        f"is below {bound:.2%}."
    )


def _failures(failed: Mapping[str, str]) -> list[str]:
    return [f"{case} could not be calibrated: {reason}" for case, reason in failed.items()]


def _cost(rows: Sequence[CaseCalibration]) -> list[str]:
    """What a duel costs in a run that gates, and what calibrating did."""
    if not rows:
        return []
    duels = sum(row.duels for row in rows)
    mean_s = sum(row.cost_s * row.duels for row in rows) / duels
    took_s = sum(row.took_s for row in rows)
    return [f"A duel costs {mean_s:.1f} s on average, looks allowed; calibrating took {took_s:,.0f} s."]


def _aligned(rows: Rows) -> str:
    return "\n".join(aligned(rows, right=range(1, len(rows[0]))))


def _markdown(rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |" for cells in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
