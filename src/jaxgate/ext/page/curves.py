"""What a suite exists to show: a quantity over a number in the names as a curve, variants side by side as bars.

Names alone decide which cases belong together, so that any suite has curves. A name is words with hyphens. Cases whose names
differ in one number are a curve over it; cases that begin alike and end alike, with other words between, are variants.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from jaxgate.ext.page.blocks import Block, Cell, Fold, Section, Table, columns
from jaxgate.ext.page.cases import figure, number
from jaxgate.ext.page.drawing import Point, line_chart
from jaxgate.model.outcome import CaseRecord, RunRecord
from jaxgate.report.units import show, show_rate_of, show_share

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(\d+(?:\.\d+)?)(?:[-_ ]?([kKMGT]?i?B|bytes?)(?![A-Za-z0-9]))?(?![A-Za-z0-9_]|\.\d)"
)
"""A number that is a word of its own, with a unit of size: not the ``16`` of ``bfloat16``, the ``2`` of ``2x4``."""
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_NEXT_WORD = re.compile(r"[-_ ]([A-Za-z]+)")
_MOST_NUMBERS = 8
"""A name with more is nobody's idea of a curve."""
_WORDS_IN_COMMON, _BRANCHES = 2, 3
"""Names that share one word only are no variants; two that differ in a word are a pair, which the table shows."""
_QUANTITIES = {
    "compile_ns": "Compile time",
    "stablehlo_ops": "Operations of the program",
    "run_ns": "Time of a call",
    "temp_bytes": "Temporary memory",
    "largest_batch": "Largest batch in memory",
    "collectives": "Collectives",
    "collective_bytes": "Bytes of collectives",
}
"""What is drawn, where it is known of two cases and not nearly the same everywhere."""
_CLOSE = 1.05
_MOST_GROUPS = 40
"""Of one kind: with more the page is no longer read, and the table has them all."""


class Series(NamedTuple):
    """A curve over a number in the names."""

    name: str  # what its cases share, with `N` for the number: `scan/rnn-forward-over-N-steps-scan-vs-loop`
    unit: str  # what the number counts: `steps`; `bytes` of sizes; empty if the name does not say
    members: tuple[tuple[float, str], ...]  # the number and the name of each case, by the number


class Variants(NamedTuple):
    """Cases that do one thing in several ways."""

    name: str  # what they share, with `…` for the rest: `pjit/pjit-mlp-train-step-…-vs-gathered`
    members: tuple[tuple[str, str], ...]  # what is its own in each name, and the name, in the order given


def find_series(names: Iterable[str]) -> tuple[Series, ...]:
    """The curves among some cases, in the order of their first case; a case may be of several."""
    found: dict[str, dict[float, str]] = defaultdict(dict)
    shown: dict[str, tuple[str, str]] = {}
    for name in names:
        for key, pattern, unit, value in _holes(name):
            found[key].setdefault(value, name)
            shown[key] = max(shown.get(key, ("", "")), (pattern, unit), key=lambda pair: len(pair[0]))
    return tuple(
        Series(*shown[key], tuple(sorted(members.items()))) for key, members in found.items() if len(members) > 1
    )


def _holes(name: str) -> Iterator[tuple[str, str, str, float]]:
    """For each number of a name: what is the same in the names of its curve, how it is shown, its unit, and its value."""
    for match in islice(_NUMBER.finditer(name), _MOST_NUMBERS):
        size, value = match[2], float(match[1])
        before, after = f"{name[: match.start()]}N", name[match.end() :]
        if size is not None:
            yield before + after, before + after, "bytes", value * _factor(size)
            continue
        word = _NEXT_WORD.match(after)
        unit = word[1] if word and word[1] != "vs" else ""
        one = after.replace(unit, unit.removesuffix("s"), 1)  # `1 device` has the curve of `2 devices`
        yield before + one, before + after, unit, value


def _factor(size: str) -> int:
    """Bytes of a unit: ``KiB`` 1024, ``kB`` 1000, ``bytes`` 1."""
    if size.startswith("byte"):
        return 1
    base = 1024 if "i" in size else 1000
    return int(base ** _POWERS[size.removesuffix("B").removesuffix("i")])


def find_variants(names: Sequence[str]) -> tuple[Variants, ...]:
    """The groups of variants among some cases: three or more ways on, after a beginning of at least two words."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in names:
        family, _, sentence = name.rpartition("/")
        body, versus, other = sentence.partition("-vs-")
        groups[family, versus + other].append(body)
    found = []
    for (family, ending), bodies in groups.items():
        before = f"{family}/" if family else ""
        for shared, members in _branches([body.split("-") for body in bodies], ()):
            rests = tuple(
                ("-".join(words[len(shared) :]) or "as it is", f"{before}{'-'.join(words)}{ending}")
                for words in members
            )
            found.append(Variants(f"{before}{'-'.join(shared)}-…{ending}", rests))
    return tuple(found)


def _branches(names: list[list[str]], shared: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[list[str]]]]:
    """The first forks of a tree of words that have enough branches; what lies above is looked at first."""
    following: dict[str, list[list[str]]] = defaultdict(list)
    for words in names:
        if len(words) >= len(shared):
            following[words[len(shared)] if len(words) > len(shared) else ""].append(words)
    ways = [word for word in following if not _NUMBER.fullmatch(word)]  # numbers are a curve
    if len(shared) >= _WORDS_IN_COMMON and len(ways) >= _BRANCHES:
        yield shared, names
        return
    for word, members in following.items():
        if word and len(members) > 1:
            yield from _branches(members, (*shared, word))


def chart_sections(runs: Sequence[RunRecord]) -> list[Section]:
    """Scaling, bandwidth, curves and variants of some runs; cases of two kinds of hardware are never one curve."""
    found: dict[str, list[Fold]] = defaultdict(list)
    for run in runs:
        found["Scaling over devices"] += _scaling(run)
        by_hardware: dict[str, dict[str, CaseRecord]] = {}
        for case in run.cases:
            if case.figures is not None:
                by_hardware.setdefault(case.hardware or "", {}).setdefault(case.case, case)
        for hardware, cases in by_hardware.items():
            on = f" on {hardware}" if hardware else ""
            series = find_series(cases)
            found["Bandwidth of collectives"] += _bandwidth(series, cases, on)
            found["Curves"] += [fold for one in series for fold in _curve(one, cases, on)]
            found["Variants"] += [fold for one in find_variants(list(cases)) for fold in _bars(one, cases, on)]
    return [
        Section(
            key=title.partition(" ")[0].lower(),
            title=title,
            blocks=[
                Fold(title=fold.title, blocks=fold.blocks, open=not at) for at, fold in enumerate(folds[:_MOST_GROUPS])
            ],
            note=f"{len(folds) - _MOST_GROUPS} more are left out." if len(folds) > _MOST_GROUPS else "",
        )
        for title, folds in found.items()
        if folds
    ]


def _curve(series: Series, cases: Mapping[str, CaseRecord], on: str) -> Iterator[Fold]:
    """Quantities over the number in which names differ: today's program and the reference."""
    charts: list[Block] = []
    for quantity, title in _QUANTITIES.items():
        lines = {
            line: [
                Point(value, amount, _at(series, value))
                for value, name in series.members
                if (amount := figure(cases[name], quantity, side)) is not None
            ]
            for line, side in _sides(series.name)
        }
        lines = {line: points for line, points in lines.items() if len(points) > 1}
        if _differ([point.y for points in lines.values() for point in points]):
            charts.append(line_chart(title, lines, show=partial(show, quantity), about=series.name))
    if charts:
        members = [(Cell(text=_at(series, value), order=value), cases[name]) for value, name in series.members]
        yield Fold(title=series.name + on, blocks=[*charts, _numbers(series.name, members)])


def _bars(variants: Variants, cases: Mapping[str, CaseRecord], on: str) -> Iterator[Fold]:
    """Cases that do one thing in several ways, below each other: layouts of a mesh, what a remat saves."""
    members: list[tuple[Cell | str, CaseRecord]] = [(own, cases[name]) for own, name in variants.members]
    table = _numbers(variants.name, members)
    if any(isinstance(cell, Cell) and cell.bar is not None for row in table.rows for cell in row):
        yield Fold(title=variants.name + on, blocks=[table])


def _sides(name: str) -> tuple[tuple[str, str], ...]:
    """The lines of a curve and the figures they show: of ``…-scan-vs-loop`` the reference is the loop."""
    _, versus, other = name.rpartition("-vs-")
    return ("now", "now"), (f"reference: {other}" if versus else "reference", "reference")


def _differ(values: Sequence[float]) -> bool:
    """Whether values differ visibly."""
    return len(values) > 1 and max(values) > 0 and max(values) > _CLOSE * min(values)


def _at(series: Series, value: float) -> str:
    return show("bytes", value) if series.unit == "bytes" else f"{value:g} {series.unit}".strip()


def _numbers(title: str, members: Sequence[tuple[Cell | str, CaseRecord]]) -> Table:
    """All quantities that a member has, of both sides, with bars where they differ."""
    other = _sides(title)[1][0]
    titles = []
    rows: list[list[Cell | str]] = [[first] for first, _ in members]
    for quantity, words in _QUANTITIES.items():
        amounts = {side: [figure(case, quantity, side) for _, case in members] for side in ("now", "reference")}
        known = [value for values in amounts.values() for value in values if value is not None]
        for side, values in amounts.items():
            if not any(values):
                continue
            titles.append(words if side == "now" else f"{words}, {other}")
            for row, value in zip(rows, values, strict=True):
                bar = value / max(known) if value is not None and _differ(known) else None
                row.append(number(quantity, value, bar=bar))
    return Table(caption=f"Numbers of {title}", columns=columns("case", numbers=titles), rows=rows)


def _bandwidth(series: Sequence[Series], cases: Mapping[str, CaseRecord], on: str) -> Iterator[Fold]:
    """Bus bandwidth of collectives over the size of the message, the curves of a family in one chart."""
    found: dict[str, dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for one in series:
        for case in (cases[name] for _, name in one.members):
            amount = case.amount
            if (
                one.unit != "bytes"
                or amount is None
                or amount.bus_factor is None
                or not case.run_ns
                or not math.isfinite(case.run_ns)
            ):
                continue
            rate = amount.count * amount.bus_factor * 1e9 / case.run_ns
            point = Point(amount.count, rate, show("bytes", amount.count))
            found[case.case.rpartition("/")[0]][one.name.rpartition("/")[2]].append(point)
    titles = columns("collective", numbers=("message", "bus bandwidth"))
    show_rate = partial(show_rate_of, unit="B")
    for family, lines in found.items():
        title = f"Bus bandwidth over message size, {family}{on}"
        rows: list[list[Cell | str]] = [
            [line, Cell(text=point.at, order=point.x), Cell(text=show_rate(point.y), order=point.y)]
            for line, points in lines.items()
            for point in points
        ]
        chart = line_chart("Bytes per second on the bus", lines, show=show_rate, about=title)
        yield Fold(title=title, blocks=[chart, Table(caption=title, columns=titles, rows=rows)])


def _scaling(run: RunRecord) -> Iterator[Fold]:
    """Rates over the number of devices, with what they would be if each device did as much as on the fewest."""
    titles = columns(numbers=("devices", "rate", "efficiency"))
    for series in run.scaling:
        if not series.points or not all(math.isfinite(point.per_second) for point in series.points):
            continue
        first = series.points[0]
        show_rate = partial(show_rate_of, unit=series.unit)
        measured = [Point(p.devices, p.per_second, str(p.devices)) for p in series.points]
        ideal = [Point(p.devices, first.per_second / first.devices * p.devices, str(p.devices)) for p in series.points]
        title = f"{series.series}: {series.unit} per second over devices"
        rows = [
            [Cell(text=str(p.devices), order=p.devices), Cell(text=show_rate(p.per_second), order=p.per_second), Cell(text=show_share(p.efficiency), order=p.efficiency)]
            for p in series.points
        ]  # fmt: skip
        chart = line_chart(
            "Rate", {"measured": measured, "as on the fewest devices": ideal}, show=show_rate, about=title
        )
        yield Fold(title=title, blocks=[chart, Table(caption=title, columns=titles, rows=rows)])
