"""What a suite exists to show: a quantity over a number in the names as a curve, variants side by side as bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxgate.model import CaseRecord, RunRecord
from jaxgate.report import show
from jaxgate.report.page.parts import Cell, Chart, Column, Group, Table
from jaxgate.report.page.series import BYTES, Series, Variants, find_series, find_variants
from jaxgate.report.page.specs import NOW, REFERENCE, bars, curve, unit_of

QUANTITIES = {
    "compile_ns": "Compile time",
    "stablehlo_ops": "Operations of the program",
    "run_ns": "Time of a call",
    "temp_bytes": "Temporary memory",
    "largest_batch": "Largest batch in memory",
    "collectives": "Collectives",
    "collective_bytes": "Bytes of collectives",
}
"""What is drawn of a series or of variants, where it is known of two cases and not the same everywhere."""
MOST_GROUPS = 40
"""Of either kind: with more the page is no longer read, and the table has them all."""
MOST_BARS = 24
_CLOSE = 1.05
_VERSUS = "-vs-"


def curve_groups(run: RunRecord, *, apart: str = "") -> tuple[Group, ...]:
    """Quantities over the number in which names differ: today's program and the reference."""
    found = []
    for place, (hardware, series, cases) in enumerate(series_of(run)):
        members = [(value, cases[name]) for value, name in series.members]
        charts = [
            chart
            for quantity in QUANTITIES
            if (chart := _curve(f"curve{apart}-{place}-{quantity}", series, members, quantity)) is not None
        ]
        if charts:
            found.append(
                Group(
                    title=on_hardware(series.name, hardware),
                    charts=charts,
                    table=_numbers(series.name, _named(series, members)),
                )
            )
    return tuple(found)


def series_of(run: RunRecord) -> Iterator[tuple[str, Series, Mapping[str, CaseRecord]]]:
    """The curves of a run: their hardware, what they are, and the cases of that hardware by name."""
    for hardware, cases in _by_hardware(run):
        for series in find_series(cases):
            yield hardware, series, cases


def _by_hardware(run: RunRecord) -> Iterator[tuple[str, Mapping[str, CaseRecord]]]:
    """The measured cases of each hardware by their names: facts of two kinds of hardware are no curve."""
    found: dict[str, dict[str, CaseRecord]] = {}
    for case in run.cases:
        if case.figures is not None:
            found.setdefault(case.hardware or "", {}).setdefault(case.case, case)
    yield from found.items()


def on_hardware(name: str, hardware: str) -> str:
    """A title with the hardware that it is about."""
    return f"{name} on {hardware}" if hardware else name


def _curve(key: str, series: Series, members: Sequence[tuple[float, CaseRecord]], quantity: str) -> Chart | None:
    rows: list[dict[str, Any]] = [
        {
            "x": value,
            "at": _at(series, value),
            "y": amount * unit_of(quantity)[0],
            "line": line,
            "shown": show(quantity, amount),
        }
        for line, side in _sides(series.name)
        for value, case in members
        if (amount := _figure(case, side, quantity)) is not None
    ]
    lines = [line for line, _ in _sides(series.name) if sum(row["line"] == line for row in rows) > 1]
    rows = [row for row in rows if row["line"] in lines]
    if not lines or not _differ(row["y"] for row in rows):
        return None
    title = QUANTITIES[quantity]
    return Chart(
        key=key,
        title=title,
        spec=curve(rows, over=series.unit, quantity=quantity, lines=lines),
        label=f"{title} over {series.unit or 'the number in the name'}, {series.name}: {spoken_curve(rows)}",
    )


def spoken_curve(rows: Sequence[Mapping[str, Any]]) -> str:
    """A curve in words: each line from its first point to its last."""
    parts = []
    for line in dict.fromkeys(row["line"] for row in rows):
        points = [row for row in rows if row["line"] == line]
        first, last = points[0], points[-1]
        parts.append(f"{line} from {first['shown']} at {first['at']} to {last['shown']} at {last['at']}")
    return "; ".join(parts)


def _sides(name: str) -> tuple[tuple[str, str], ...]:
    """The lines of a curve and the figures they show: of ``…-scan-vs-loop`` the reference is the loop."""
    _, versus, other = name.rpartition(_VERSUS)
    return (NOW, "now"), (f"{REFERENCE}: {other}" if versus else REFERENCE, "reference")


def _figure(case: CaseRecord, side: str, quantity: str) -> float | None:
    figures = case.figures
    found: float | None = None if figures is None else getattr(figures, side).get(quantity)
    return found


def _differ(values: Iterable[float]) -> bool:
    """Whether there is something to see: all are the same, or nearly, else."""
    known = list(values)
    return bool(known) and max(known) > 0 and max(known) > _CLOSE * min(known)


def _at(series: Series, value: float) -> str:
    return show(BYTES, value) if series.unit == BYTES else f"{value:g} {series.unit}".strip()


def _named(series: Series, members: Sequence[tuple[float, CaseRecord]]) -> list[tuple[Cell, CaseRecord]]:
    return [(Cell(text=_at(series, value), order=value), case) for value, case in members]


def _numbers(title: str, members: Sequence[tuple[Cell, CaseRecord]]) -> Table:
    """All quantities that are known of one of the members, of both sides."""
    other = _sides(title)[1][0]
    known = [
        (quantity, side)
        for quantity in QUANTITIES
        for side in ("now", "reference")
        if any(_figure(case, side, quantity) for _, case in members)
    ]
    columns = [Column(title="case")]
    columns += [
        Column(title=QUANTITIES[quantity] + ("" if side == "now" else f", {other}"), number=True)
        for quantity, side in known
    ]
    rows = [
        [name, *(_amount(quantity, _figure(case, side, quantity)) for quantity, side in known)]
        for name, case in members
    ]
    return Table(caption=f"Numbers of {title}", columns=columns, rows=rows)


def _amount(quantity: str, value: float | None) -> Cell:
    return Cell(text="–" if value is None else show(quantity, value), order=value)


def variant_groups(run: RunRecord, *, apart: str = "") -> tuple[Group, ...]:
    """Cases that do one thing in several ways, below each other: layouts of a mesh, what a remat saves."""
    found = []
    groups = [
        (hardware, variants, cases) for hardware, cases in _by_hardware(run) for variants in find_variants(list(cases))
    ]
    for place, (hardware, variants, cases) in enumerate(groups):
        members = [(own, cases[name]) for own, name in variants.members[:MOST_BARS]]
        charts = [
            chart
            for quantity in QUANTITIES
            if (chart := _bars(f"variants{apart}-{place}-{quantity}", variants, members, quantity)) is not None
        ]
        if charts:
            table = _numbers(variants.name, [(Cell(text=own), case) for own, case in members])
            left = len(variants.members) - len(members)
            note = f"{left} more are in the table of all cases." if left else ""
            found.append(Group(title=on_hardware(variants.name, hardware), charts=charts, table=table, note=note))
    return tuple(found)


def _bars(key: str, variants: Variants, members: Sequence[tuple[str, CaseRecord]], quantity: str) -> Chart | None:
    rows: list[dict[str, Any]] = [
        {"name": own, "y": amount * unit_of(quantity)[0], "line": line, "shown": show(quantity, amount)}
        for own, case in members
        for line, side in _sides(variants.name)
        if (amount := _figure(case, side, quantity)) is not None
    ]
    lines = [line for line, _ in _sides(variants.name) if any(row["line"] == line for row in rows)]
    if len({row["name"] for row in rows}) < 2 or not _differ(row["y"] for row in rows):  # noqa: PLR2004 - one bar alone
        return None
    title = QUANTITIES[quantity]
    spoken = ", ".join(f"{row['name']} {row['shown']}" for row in rows if row["line"] == NOW)
    return Chart(
        key=key,
        title=title,
        spec=bars(rows, quantity=quantity, lines=lines),
        label=f"{title} of the variants of {variants.name}: {spoken}",
    )
