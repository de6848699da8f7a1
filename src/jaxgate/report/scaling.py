"""Scaling efficiency, for people: a line of the terminal for each series, a table of the summary."""

from __future__ import annotations

from collections.abc import Iterable

from jaxgate.model import Point, Scaling
from jaxgate.report.markdown import code
from jaxgate.report.table import aligned
from jaxgate.report.units import show_rate_of, show_share


def scaling_lines(found: Iterable[Scaling]) -> list[str]:
    """``data-parallel, weak  1: 1.2 M samples/s, 8: 7.9 M samples/s (82 %)``, aligned."""
    series = list(found)
    texts = [", ".join(_point(point, each) for point in each.points) for each in series]
    return aligned([(each.series,) for each in series], texts=texts)


def scaling_table(found: Iterable[Scaling]) -> list[str]:
    """A Markdown table with a row for each number of devices of each series; no line if there is none."""
    rows = [
        f"| {code(each.series)} | {point.devices} | {show_rate_of(point.per_second, each.unit)} "
        f"| {show_share(point.efficiency)} |"
        for each in found
        for point in each.points
    ]
    return ["| scaling | devices | rate | efficiency |", "|---|--:|--:|--:|", *rows] if rows else []


def _point(point: Point, series: Scaling) -> str:
    rate = f"{point.devices}: {show_rate_of(point.per_second, series.unit)}"
    return rate if point is series.points[0] else f"{rate} ({show_share(point.efficiency)})"
