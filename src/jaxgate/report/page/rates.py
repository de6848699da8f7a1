"""Rates as curves: what collectives bring over the bus by the size of their message, and what more devices bring."""

from __future__ import annotations

from typing import Any

from jaxgate.model import CaseRecord, RunRecord
from jaxgate.report import show, show_rate_of, show_share
from jaxgate.report.page.curves import on_hardware, series_of, spoken_curve
from jaxgate.report.page.parts import Cell, Chart, Column, Group, Table
from jaxgate.report.page.series import BYTES
from jaxgate.report.page.specs import curve


def bandwidth_groups(run: RunRecord, *, apart: str = "") -> tuple[Group, ...]:
    """Bus bandwidth of collectives over the size of the message, the curves of a family in one chart."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for hardware, series, cases in series_of(run):
        for case in (cases[name] for _, name in series.members):
            rate = _bus_rate(case)
            if series.unit == BYTES and rate is not None and case.amount is not None:
                line = series.name.rpartition("/")[2]
                family = case.case.rpartition("/")[0]
                size = case.amount.count
                row = {"x": size, "at": show(BYTES, size), "y": rate, "line": line, "shown": show_rate_of(rate, "B")}
                found.setdefault((family, hardware), []).append(row)
    groups = []
    for place, ((family, hardware), rows) in enumerate(found.items()):
        lines = list(dict.fromkeys(row["line"] for row in rows))
        spec = curve(rows, over=BYTES, quantity="bandwidth_bytes", lines=lines, sides=False)
        title = f"Bus bandwidth over message size, {on_hardware(family, hardware)}"
        cells = [
            [row["line"], Cell(text=row["at"], order=row["x"]), Cell(text=row["shown"], order=row["y"])] for row in rows
        ]
        columns = (
            Column(title="collective"),
            Column(title="message", number=True),
            Column(title="bus bandwidth", number=True),
        )
        chart = Chart(
            key=f"bandwidth{apart}-{place}",
            title="Bytes per second on the bus",
            spec=spec,
            label=f"{title}: {spoken_curve(rows)}",
        )
        groups.append(Group(title=title, charts=(chart,), table=Table(caption=title, columns=columns, rows=cells)))
    return tuple(groups)


def _bus_rate(case: CaseRecord) -> float | None:
    """Bytes per second that cross the bus; ``None`` of what is no collective, or was not timed."""
    amount = case.amount
    if amount is None or amount.bus_factor is None or not case.run_ns:
        return None
    return amount.count * amount.bus_factor * 1e9 / case.run_ns


def scaling_groups(run: RunRecord, *, apart: str = "") -> tuple[Group, ...]:
    """Rates over the number of devices, with what they would be if each device did as much as on the fewest."""
    groups = []
    for place, series in enumerate(run.scaling):
        first = series.points[0] if series.points else None
        if first is None:
            continue
        ideal = first.per_second / first.devices
        lines = ("measured", "as on the fewest devices")
        rows = [
            {
                "x": point.devices,
                "at": str(point.devices),
                "y": rate,
                "line": line,
                "shown": show_rate_of(rate, series.unit),
            }
            for line, rates in zip(
                lines,
                ([p.per_second for p in series.points], [ideal * p.devices for p in series.points]),
                strict=True,
            )
            for point, rate in zip(series.points, rates, strict=True)
        ]
        title = f"{series.series}: {series.unit} per second over devices"
        cells = [
            [
                Cell(text=str(point.devices), order=point.devices),
                Cell(text=show_rate_of(point.per_second, series.unit), order=point.per_second),
                Cell(text=show_share(point.efficiency), order=point.efficiency),
            ]
            for point in series.points
        ]
        columns = (
            Column(title="devices", number=True),
            Column(title="rate", number=True),
            Column(title="efficiency", number=True),
        )
        spec = curve(rows, over="devices", quantity="", lines=lines, sides=False)
        chart = Chart(key=f"scaling{apart}-{place}", title="Rate", spec=spec, label=f"{title}: {spoken_curve(rows)}")
        groups.append(Group(title=title, charts=(chart,), table=Table(caption=title, columns=columns, rows=cells)))
    return tuple(groups)
