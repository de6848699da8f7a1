"""The page of a case's history: what moved and since when, a curve of each quantity over its runs, and the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxgate.ext.history.model import HistoryPoint
from jaxgate.ext.page.charts import Cell, Chart, Column, Section, Table, curve, unit_of
from jaxgate.ext.page.curves import spoken_curve
from jaxgate.ext.page.document import document
from jaxgate.model.words import plural
from jaxgate.report.units import show, show_ratio

RATIO, SINCE_FIRST = "against the baseline", "against the first baseline"
_CLOCK = "_ns"
_PHASES = ("run_ns", "compile_ns", "trace_ns")
"""What a clock measured and is drawn; the rest stands in the results of each run."""
_COMMIT = 10
_DOT = 14
_FEWEST = 2
"""Points of a curve."""


def history_document(
    points: Sequence[HistoryPoint],
    changes: Mapping[str, Sequence[str]],
    relative: Mapping[str, Mapping[str, float]],
    *,
    library: str,
) -> str:
    """Put the page together.

    Args:
        points: Of one case, oldest first, of one or several kinds of hardware.
        changes: By folder, what the history shows in words: drift, facts, creep and steps.
        relative: By folder and run, the time of a call as a multiple of the first baseline's, where that is known.
        library: The charts' JavaScript; empty leaves the charts out.

    Returns:
        HTML in one file.
    """
    folders = dict.fromkeys(point.folder for point in points)
    sections = [
        _section(
            place,
            folder,
            [point for point in points if point.folder == folder],
            changes.get(folder, ()),
            relative.get(folder, {}),
        )
        for place, folder in enumerate(folders)
    ]
    title = f"jaxgate: history of {points[0].case}, {plural(len(points), 'run')}"
    return document(title=title, sections=sections, library=library)


def _section(
    place: int, folder: str, points: Sequence[HistoryPoint], lines: Sequence[str], relative: Mapping[str, float]
) -> Section:
    since_first = [relative.get(point.run) for point in points]
    charts = [*_chart(f"history-{place}-first", SINCE_FIRST, "", points, since_first), *_charts(place, points)]
    values: dict[str, Any] = {"lines": list(lines), "charts": charts, "tables": [_runs(points)]}
    title = folder or "hardware that is not known"
    return Section(key=f"history-{place}", title=title, template="tables.html", values=values, charts=charts)


def _charts(place: int, points: Sequence[HistoryPoint]) -> Iterator[Chart]:
    """The ratio to the baseline, times, and each fact that was not always the same."""
    ratios = [point.ratio if point.ratio is not None else 1.0 if _is_same(point) else None for point in points]
    yield from _chart(f"history-{place}-ratio", RATIO, "", points, ratios)
    names = dict.fromkeys(name for point in points for name in point.figures)
    facts = [name for name in names if not name.endswith(_CLOCK)]
    for name in (*(name for name in _PHASES if name in names), *facts):
        yield from _chart(f"history-{place}-{name}", name, name, points, [point.figures.get(name) for point in points])


def _is_same(point: HistoryPoint) -> bool:
    """Whether its program is the baseline's, so that nobody had to time it."""
    return point.time_status == "SAME" and not point.elsewhere and point.baseline is not None


def _chart(
    key: str, title: str, quantity: str, points: Sequence[HistoryPoint], values: Sequence[float | None]
) -> Iterator[Chart]:
    factor, _ = unit_of(quantity) if quantity else (1, "")
    rows = [
        {"x": number, "moment": point.moment, "at": _named(point), "y": value * factor, "line": title,
         "shown": show(quantity, value) if quantity else show_ratio(value, 1)}
        for number, (point, value) in enumerate(zip(points, values, strict=True), 1)
        if value is not None
    ]  # fmt: skip
    if len(rows) < _FEWEST or len({row["y"] for row in rows}) == 1:
        return
    spec = curve(rows, over="run", quantity=quantity, lines=[title], sides=False)
    spec["mark"]["point"]["size"] = _DOT
    spec["encoding"]["x"] = {
        "field": "moment",
        "type": "temporal",
        "title": None,
        "axis": {"grid": False, "tickCount": 5},
    }
    spec["encoding"]["y"]["scale"] = {"zero": False, "nice": True}
    if not quantity:
        spec["encoding"]["y"]["axis"] = {"labelExpr": "format(datum.value, '.2~f') + ' ×'", "tickCount": 5}
    yield Chart(key=key, title=title, spec=spec, label=f"{title} over the runs: {spoken_curve(rows)}")


def _named(point: HistoryPoint) -> str:
    return f"{_when(point)}, {(point.commit or 'commit unknown')[:_COMMIT]}"


def _when(point: HistoryPoint) -> str:
    return point.moment[:16].replace("T", " ")


def _runs(points: Sequence[HistoryPoint]) -> Table:
    """All runs, the newest first, with what is drawn and with every fact that moved."""
    names = dict.fromkeys(name for point in points for name in point.figures)
    moved = [
        name
        for name in names
        if (name in _PHASES or not name.endswith(_CLOCK)) and len({point.figures.get(name) for point in points}) > 1
    ]
    head = [
        Column(title="run"),
        *(Column(title=title) for title in ("commit", "status", "baseline")),
        Column(title=RATIO, number=True),
        *(Column(title=name, number=True) for name in moved),
    ]
    rows: list[list[Cell | str]] = [
        [
            _when(point),
            (point.commit or "unknown")[:_COMMIT],
            point.status or f"from {point.source}",
            " ".join(filter(None, (point.recorded, point.elsewhere))),
            Cell(text=_interval(point), order=point.ratio),
            *(_amount(name, point.figures.get(name)) for name in moved),
        ]
        for point in reversed(points)
    ]
    return Table(caption=f"All {plural(len(points), 'run')}, the newest first", columns=head, rows=rows, shown=True)


def _amount(name: str, value: float | None) -> Cell:
    return Cell(text="" if value is None else show(name, value), order=value)


def _interval(point: HistoryPoint) -> str:
    if point.ratio is None:
        return "identical program" if _is_same(point) else ""
    bounds = "" if point.low is None or point.high is None else f" [{point.low:.2f}, {point.high:.2f}]"
    return f"{show_ratio(point.ratio, 1)}{bounds}"
