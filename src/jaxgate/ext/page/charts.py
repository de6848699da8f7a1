"""Charts in Vega-Lite's language. Colours are variables of the page's style: light and dark need no second drawing.

What a page is made of: sections, tables and charts, as plain data. The templates say what they look like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Spec = dict[str, Any]
"""A chart in Vega-Lite's language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; numbers stand to the right, and are sorted as such."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell."""

    text: str  # what it shows
    order: float | None = None  # what it is sorted by, where that is not its text


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; the first cell of each row is the row's heading."""

    caption: str  # what it is a table of: screen readers say it first
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]
    shown: bool = False  # whether the caption is seen, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart. A table beside it has the same numbers, for who cannot see it and where scripts are blocked."""

    key: str  # names it on its page, as in `id`
    title: str  # what it shows, as its heading
    spec: Spec  # its specification, with its data
    label: str  # what it shows, in a sentence, for a screen reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Charts about one thing, and one table with the numbers of them all."""

    title: str
    charts: Sequence[Chart]
    table: Table
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page, with a heading that the page's navigation leads to."""

    key: str  # its fragment
    title: str  # its heading
    template: str  # the file among the templates that shows it
    values: Mapping[str, Any]  # what that file is given, as `it`
    charts: Sequence[Chart] = field(default_factory=tuple)  # the charts that it has a place for


NOW, STORED, REFERENCE = "now", "baseline", "reference"
"""The three sides, by the words that a legend has for them."""
SIDES = (NOW, STORED, REFERENCE)
_SIDE_COLOURS = ["var(--now)", "var(--stored)", "var(--reference)"]
_COLOURS = [f"var(--c{number})" for number in range(1, 9)]
_LOG_FROM = 20.0
"""Values that are so many times apart need a logarithmic axis: on a straight one the small ones all look like nothing."""
_LOG_X_FROM = 8.0
_FEW_POWERS = 4
_UNITS = {"ns": (1e-9, "s"), "bytes": (1, "B"), "flops": (1, "FLOP"), "uj": (1e-6, "J")}
_DASHES = [[1, 0], [6, 3], [2, 3], [8, 3, 2, 3], [4, 2], [1, 2], [10, 4], [3, 1]]
POINT = 55
_WIDE: Spec = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
"""As wide as its place on the page."""

CONFIG: Spec = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--ink)",
        "gridColor": "var(--grid)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 190,
        "labelSeparation": 8,
    },
    "legend": {"labelColor": "var(--ink)", "titleColor": "var(--ink)", "labelFontSize": 12, "orient": "top", "title": None,
               "labelLimit": 260, "symbolStrokeWidth": 0},
    "view": {"stroke": None},
    "range": {"category": _COLOURS},
    "rule": {"color": "var(--line)"},
    "text": {"color": "var(--ink)"},
}  # fmt: skip


def unit_of(quantity: str) -> tuple[float, str]:
    """By what a quantity is multiplied for an axis, and its unit there: seconds, bytes; nothing for a count."""
    return _UNITS.get(quantity.rpartition("_")[2], (1, ""))


def axis(unit: str, **more: Any) -> Spec:
    """An axis whose labels have prefixes and the unit: ``50 ms``."""
    label = (
        f"replace(format(datum.value, '.3~s'), /([a-zµ]?)$/i, ' $1') + '{unit}'"
        if unit
        else "format(datum.value, '.3~s')"
    )
    return {"labelExpr": label, "tickCount": 5, **more}


def scale_of(values: Iterable[float], least: float = _LOG_FROM) -> Spec:
    """Logarithmic where that is needed and can be."""
    known = list(values)
    if known and min(known) > 0 and max(known) / min(known) >= least:
        return {"type": "log", "nice": False, "padding": 8}
    return {"type": "linear", "zero": True}


def _log_ticks(scale: Spec, values: Iterable[float]) -> Spec:
    """Few labels for a logarithmic axis: 1, 2 and 5 of each power of ten, or the powers alone where there are many."""
    if scale["type"] != "log":
        return {}
    known = list(values)
    powers = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
    steps = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
    ticks = [float(f"{step}e{power}") for power in powers for step in steps]
    inside = [tick for tick in ticks if min(known) * 0.9 <= tick <= max(known) * 1.1]
    return {"values": inside} if len(inside) > 1 else {}


def curve(
    rows: Sequence[Mapping[str, Any]], *, over: str, quantity: str, lines: Sequence[str], sides: bool = True
) -> Spec:
    """Lines with points over a number.

    Args:
        rows: With ``x``, ``y`` in the unit of the axis, ``line``, and ``shown`` in words.
        over: What the number counts: ``bytes`` have prefixes.
        quantity: What is drawn: the last word is its unit.
        lines: The lines in their order.
        sides: Whether these are sides of cases, which have colours of their own.
    """
    below = scale_of([row["x"] for row in rows], _LOG_X_FROM)
    below = {**below, "padding": 12, **({"zero": False} if below["type"] == "linear" else {})}
    heights = [row["y"] for row in rows]
    beside = scale_of(heights)
    return {
        **_WIDE,
        "height": 190,
        "data": {"values": list(rows)},
        "mark": {"type": "line", "point": {"size": POINT, "filled": True}, "strokeWidth": 2, "tooltip": True},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": {"bytes": "size"}.get(over, over) or None, "scale": below,
                  "axis": axis("B" if over == "bytes" else "", grid=False, **_ticks(rows))},
            "y": {"field": "y", "type": "quantitative", "title": None, "scale": beside,
                  "axis": axis(unit_of(quantity)[1] if quantity else "", **_log_ticks(beside, heights))},
            **_lines(lines, sides=sides),
            "tooltip": [{"field": "line", "title": " "}, {"field": "at", "title": over or "at"}, {"field": "shown", "title": "value"}],
        },
    }  # fmt: skip


def _ticks(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """A tick for each number that has a point, as long as they have room."""
    found = sorted({row["x"] for row in rows})
    return {"values": found} if len(found) <= len(_DASHES) else {}


def _lines(lines: Sequence[str], *, sides: bool) -> Spec:
    """Colour, dash and shape of each line: nobody has to tell them apart by colour alone."""
    colours = _SIDE_COLOURS if sides else _COLOURS
    chosen = [colours[place % len(colours)] for place in range(len(lines))]
    if sides:
        chosen = [
            _SIDE_COLOURS[next((p for p, side in enumerate(SIDES) if line.startswith(side)), 0)] for line in lines
        ]
    domain = {"domain": list(lines)}
    legend = (
        None if len(lines) == 1 else {"columns": 1 if max(map(len, lines)) > len("baseline of its recording") else 0}
    )
    return {
        "color": {"field": "line", "type": "nominal", "scale": {**domain, "range": chosen}, "legend": legend},
        "strokeDash": {"field": "line", "type": "nominal", "legend": legend,
                       "scale": {**domain, "range": [_DASHES[place % len(_DASHES)] for place in range(len(lines))]}},
        "shape": {"field": "line", "type": "nominal", "legend": legend,
                  "scale": {**domain, "range": ["circle", "square", "triangle-up", "diamond", "cross"]}},
    }  # fmt: skip


def bars(rows: Sequence[Mapping[str, Any]], *, quantity: str, lines: Sequence[str], sides: bool = True) -> Spec:
    """A bar for each line of each row, the rows below each other.

    Args:
        rows: With ``name``, ``y`` in the unit of the axis, ``line``, and ``shown`` in words.
        quantity: What is drawn: the last word is its unit.
        lines: The lines in their order.
        sides: Whether these are sides of a case.
    """
    scale = scale_of(row["y"] for row in rows)
    mark: Spec = {"type": "bar", "tooltip": True, "cornerRadiusEnd": 2}
    if scale["type"] == "log":  # a bar from nowhere to a logarithm says nothing by its length
        mark = {"type": "point", "filled": True, "size": POINT * 1.5, "opacity": 1, "tooltip": True}
    encoding = {
        key: value
        for key, value in _lines(lines, sides=sides).items()
        if key == "color" or (key == "shape" and mark["type"] == "point")
    }
    return {
        **_WIDE,
        "height": len({row["name"] for row in rows}) * (13 * len(lines) + 6 if len(lines) > 1 and mark["type"] == "bar" else 20),
        "data": {"values": list(rows)},
        "mark": mark,
        "encoding": {
            "y": {"field": "name", "type": "nominal", "title": None, "sort": None, "axis": {"grid": mark["type"] == "point"}},
            "x": {"field": "y", "type": "quantitative", "title": None, "scale": scale, "axis": axis(unit_of(quantity)[1], **_log_ticks(scale, (row["y"] for row in rows)))},
            **({"yOffset": {"field": "line", "scale": {"domain": list(lines)}}} if len(lines) > 1 and mark["type"] == "bar" else {}),
            **encoding,
            "tooltip": [{"field": "name", "title": " "}, {"field": "line", "title": "side"}, {"field": "shown", "title": "value"}],
        },
    }  # fmt: skip


def _sides() -> Spec:
    return {
        "field": "side",
        "type": "nominal",
        "scale": {"domain": list(SIDES), "range": _SIDE_COLOURS},
        "legend": None,
    }


def of_one_case() -> dict[str, Spec]:
    """The charts of a single case, without their data: the page's script fills them when a case is opened.

    ``times`` has a stroke for each call and a dot for the median; ``ratio`` the interval of the duel between the margin and
    what would have been seen; ``memory`` and ``phases`` the bars of all sides.
    """
    rows: Spec = {**_WIDE, "data": {"values": []}}
    by_side: Spec = {"field": "side", "type": "nominal", "title": None, "sort": list(SIDES)}
    seconds: Spec = {"field": "x", "type": "quantitative", "title": None, "axis": axis("s"), "scale": {"zero": False}}
    ratio: Spec = {
        "type": "quantitative",
        "title": None,
        "axis": {"labelExpr": "format(datum.value, '.4~r') + ' ×'", "tickCount": 5},
        "scale": {"zero": False, "padding": 20},
    }
    phase: Spec = {
        "field": "phase",
        "type": "nominal",
        "sort": None,
        "scale": {"range": _COLOURS[:5]},
        "legend": {"columns": 3},
    }
    return {
        "times": {
            **rows, "height": {"step": 40},
            "encoding": {"y": by_side, "x": seconds, "color": _sides()},
            "layer": [
                {"transform": [{"filter": "!datum.median"}],
                 "mark": {"type": "tick", "thickness": 1.5, "size": 24, "opacity": 0.55, "tooltip": True},
                 "encoding": {"tooltip": [{"field": "shown", "title": "one call"}]}},
                {"transform": [{"filter": "datum.median"}],
                 "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1, "stroke": "var(--paper)", "tooltip": True},
                 "encoding": {"tooltip": [{"field": "shown", "title": "median"}]}},
            ],
        },
        "ratio": {
            **rows, "height": 64,
            "layer": [
                {"transform": [{"filter": "datum.kind == 'margin'"}],
                 "mark": {"type": "rect", "color": "var(--grid)", "opacity": 0.8},
                 "encoding": {"x": {"field": "low", **ratio}, "x2": {"field": "high"}}},
                {"transform": [{"filter": "datum.kind == 'same'"}], "mark": {"type": "rule", "color": "var(--muted)"},
                 "encoding": {"x": {"field": "at", **ratio}}},
                {"transform": [{"filter": "datum.kind == 'sees'"}],
                 "mark": {"type": "rule", "color": "var(--muted)", "strokeDash": [4, 3], "tooltip": True},
                 "encoding": {"x": {"field": "at", **ratio}, "tooltip": [{"field": "shown", "title": "detectable"}]}},
                {"transform": [{"filter": "datum.kind == 'interval'"}], "mark": {"type": "rule", "color": "var(--now)", "strokeWidth": 4},
                 "encoding": {"x": {"field": "low", **ratio}, "x2": {"field": "high"}}},
                {"transform": [{"filter": "datum.kind == 'confirmed'"}],
                 "mark": {"type": "point", "shape": "diamond", "size": 60, "color": "var(--stored)", "opacity": 1, "tooltip": True},
                 "encoding": {"x": {"field": "at", **ratio}, "tooltip": [{"field": "shown", "title": "in a fresh process"}]}},
                {"transform": [{"filter": "datum.kind == 'interval'"}],
                 "mark": {"type": "point", "filled": True, "size": 110, "color": "var(--now)", "opacity": 1, "tooltip": True},
                 "encoding": {"x": {"field": "at", **ratio}, "tooltip": [{"field": "shown", "title": "now / baseline"}]}},
            ],
        },
        "memory": {
            **rows, "height": 160,
            "mark": {"type": "bar", "tooltip": True, "cornerRadiusEnd": 2},
            "encoding": {
                "y": {"field": "name", "type": "nominal", "title": None, "sort": None},
                "yOffset": {"field": "side", "scale": {"domain": list(SIDES)}},
                "x": {"field": "x", "type": "quantitative", "title": None, "axis": axis("B")},
                "color": {**_sides(), "legend": {}},
                "tooltip": [{"field": "side", "title": " "}, {"field": "name", "title": "kind"}, {"field": "shown", "title": "value"}],
            },
        },
        "phases": {
            **rows, "height": {"step": 26},
            "mark": {"type": "bar", "tooltip": True},
            "encoding": {
                "y": by_side,
                "x": {**seconds, "scale": {"zero": True}, "stack": True},
                "color": phase, "order": {"field": "place"},
                "tooltip": [{"field": "side", "title": " "}, {"field": "phase", "title": "phase"}, {"field": "shown", "title": "value"}],
            },
        },
    }  # fmt: skip
