"""The page of a case's history: what moved and since when, a curve of each quantity over its runs, and the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import isfinite

from jaxgate.ext.history.model import HistoryPoint
from jaxgate.ext.history.text import ratio_text, what_it_was, when
from jaxgate.ext.page.blocks import Block, Cell, Chart, Column, Items, Section, Table
from jaxgate.ext.page.document import document
from jaxgate.ext.page.drawing import Point, line_chart
from jaxgate.model.words import plural
from jaxgate.report.units import show, show_ratio

RATIO, SINCE_FIRST = "against the baseline", "against the first baseline"
_CLOCK = "_ns"
_PHASES = ("run_ns", "compile_ns", "trace_ns")
"""What a clock measured and is drawn; the rest stands in the results of each run."""
_COMMIT = 10
_FEWEST = 2
"""Points of a curve."""


def history_document(
    points: Sequence[HistoryPoint], changes: Mapping[str, Sequence[str]], relative: Mapping[str, Mapping[str, float]]
) -> str:
    """HTML in one file of the runs of one case, oldest first, on one or several kinds of hardware.

    By folder, ``changes`` says what the history shows in words; by folder and run, ``relative`` gives the time of a call as a
    multiple of the first baseline's.
    """
    sections = []
    for place, folder in enumerate(dict.fromkeys(point.folder for point in points)):
        own = [point for point in points if point.folder == folder]
        since_first = [relative.get(folder, {}).get(point.run) for point in own]
        words: list[Block] = [Items(lines=changes[folder])] if changes.get(folder) else []
        charts = [*_chart(SINCE_FIRST, "", own, since_first), *_charts(own)]
        title = folder or "hardware that is not known"
        sections.append(Section(key=f"history-{place}", title=title, blocks=[*words, *charts, _runs(own)]))
    return document(title=f"jaxgate: history of {points[0].case}, {plural(len(points), 'run')}", sections=sections)


def _charts(points: Sequence[HistoryPoint]) -> Iterator[Chart]:
    """The ratio to the baseline, times, and each fact that was not always the same."""
    ratios = [1.0 if _is_same(point) else point.ratio for point in points]
    yield from _chart(RATIO, "", points, ratios)
    names = dict.fromkeys(name for point in points for name in point.figures)
    facts = [name for name in names if not name.endswith(_CLOCK)]
    for name in (*(name for name in _PHASES if name in names), *facts):
        yield from _chart(name, name, points, [point.figures.get(name) for point in points])


def _is_same(point: HistoryPoint) -> bool:
    """Whether a run's program is the baseline's, so that nobody had to time it."""
    return point.ratio is None and point.time_status == "SAME" and not point.elsewhere and point.baseline is not None


def _chart(
    title: str, quantity: str, points: Sequence[HistoryPoint], values: Sequence[float | None]
) -> Iterator[Chart]:
    drawn = [
        Point(number, value, f"{when(point.moment)}, {(point.commit or 'commit unknown')[:_COMMIT]}")
        for number, (point, value) in enumerate(zip(points, values, strict=True), 1)
        if value is not None and isfinite(value)
    ]
    if len(drawn) < _FEWEST or len({point.y for point in drawn}) == 1:
        return
    show_value = partial(show, quantity) if quantity else partial(show_ratio, against=1)
    yield line_chart(title, {title: drawn}, show=show_value, about="the runs", moments=True)


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
            when(point.moment),
            (point.commit or "unknown")[:_COMMIT],
            point.status or f"from {point.source}",
            what_it_was(point),
            Cell(text=ratio_text(point) or ("identical program" if _is_same(point) else ""), order=point.ratio),
            *(_amount(name, point.figures.get(name)) for name in moved),
        ]
        for point in reversed(points)
    ]
    return Table(caption=f"All {plural(len(points), 'run')}, the newest first", columns=head, rows=rows, shown=True)


def _amount(name: str, value: float | None) -> Cell:
    return Cell(text="" if value is None else show(name, value), order=value)
