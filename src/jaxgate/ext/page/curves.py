"""What a suite exists to show: a quantity over a number in the names as a curve, variants side by side as bars.

Which cases belong together: by their names alone, so that any suite has curves and not the catalogue only.

A name is words with hyphens. Cases whose names differ in one number are a curve over that number; cases that begin alike
and end alike, with other words between, are variants of one thing.

Rates as curves: what collectives bring over the bus by the size of their message, and what more devices bring.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jaxgate.ext.page.charts import NOW, REFERENCE, Cell, Chart, Column, Group, Table, bars, curve, unit_of
from jaxgate.model.outcome import CaseRecord, RunRecord
from jaxgate.report.units import show, show_rate_of, show_share

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(\d+(?:\.\d+)?)(?:[-_ ]?([kKMGT]?i?B|bytes?)(?![A-Za-z0-9]))?(?![A-Za-z0-9_]|\.\d)"
)
"""A number that is a word of its own, with a unit of size: not the ``16`` of ``bfloat16``, the ``2`` of ``2x4``."""
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NEXT_WORD = re.compile(r"[-_ ]([A-Za-z]+)")
_MOST_NUMBERS = 8
"""A name with more is nobody's idea of a curve."""
HOLE = "N"
"""Stands for the number in the name of a curve."""
BYTES = "bytes"
_SIDES = "-vs-"
_WORDS_IN_COMMON = 2
"""Names that share one word only, ``train``, are not variants of one thing."""
_BRANCHES = 3
"""Two that differ in a word are a pair; the table shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A curve over a number in the names."""

    name: str  # what its cases share, with `N` for the number: `scan/rnn-forward-over-N-steps-scan-vs-loop`
    unit: str  # what the number counts: `steps`; `bytes` of sizes; empty if the name does not say
    members: tuple[tuple[float, str], ...]  # the number and the name of each case, by the number


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
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
        Series(name=shown[key][0], unit=shown[key][1], members=tuple(sorted(members.items())))
        for key, members in found.items()
        if len(members) > 1
    )


def _holes(name: str) -> Iterator[tuple[str, str, str, float]]:
    """For each number of a name: what is the same in the names of its curve, how it is shown, its unit, and its value."""
    for match in islice(_NUMBER.finditer(name), _MOST_NUMBERS):
        size, value = match[2], float(match[1])
        before, after = f"{name[: match.start()]}{HOLE}", name[match.end() :]
        if size is not None:
            yield before + after, before + after, BYTES, value * _factor(size)
            continue
        word = _NEXT_WORD.match(after)
        unit = word[1] if word and word[1] != "vs" else ""
        one = after.replace(unit, unit.removesuffix("s"), 1)  # `1 device` has the curve of `2 devices`
        yield before + one, before + after, unit, value


def _factor(size: str) -> int:
    """How many bytes one of a unit has: ``KiB`` 1024, ``kB`` 1000, ``bytes`` 1."""
    if size.startswith("byte"):
        return 1
    prefix = size.removesuffix("B").removesuffix("i")
    return (_BINARY if "i" in size else _DECIMAL)[prefix]


def find_variants(names: Sequence[str]) -> tuple[Variants, ...]:
    """The groups of variants among some cases: three or more ways on, after a beginning of at least two words."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in names:
        family, _, sentence = name.rpartition("/")
        body, versus, other = sentence.partition(_SIDES)
        groups[family, versus + other].append(body)
    found = []
    for (family, ending), bodies in groups.items():
        before = f"{family}/" if family else ""
        for shared, members in _branches([body.split("-") for body in bodies], ()):
            rests = tuple(
                ("-".join(words[len(shared) :]) or "as it is", f"{before}{'-'.join(words)}{ending}")
                for words in members
            )
            found.append(Variants(name=f"{before}{'-'.join(shared)}-…{ending}", members=rests))
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
