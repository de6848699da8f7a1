"""The history of a case in the terminal: a curve of each quantity that moved, and a row for each run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from types import MappingProxyType

from jaxgate.model import HistoryCase, HistoryPoint, plural
from jaxgate.report.printable import printable, printable_line
from jaxgate.report.table import aligned
from jaxgate.report.units import show, show_ratio

CURVE = 60
"""Signs of a curve; of a longer history each stands for several runs."""
ROWS = 20
"""Runs of the table, unless more were asked for."""
_LEVELS = "▁▂▃▄▅▆▇█"
_CLOCK = "_ns"
_SCHEMA = 1
_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
_NO_COUNTS: Mapping[str, int] = MappingProxyType({})


def history_list(cases: Sequence[HistoryCase]) -> str:
    """All cases, a row each."""
    rows = [["case", "hardware and jax", "runs", "last status", "last run"]]
    rows += [[c.case, c.folder or "unknown", f"{c.runs}", c.status or "unknown", _when(c.moment)] for c in cases]
    return "".join(f"{line}\n" for line in aligned(rows, right={2}))


def history_text(
    points: Sequence[HistoryPoint],
    rows: int | None = None,
    changes: Mapping[str, Sequence[str]] = _NOTHING,
    known: Mapping[str, int] = _NO_COUNTS,
) -> str:
    """The history of one case: for each hardware and release line the curves, what moved in words, then the table.

    Args:
        points: Of the case, oldest first.
        rows: Runs of each table, the newest; ``None`` for a few.
        changes: By folder, drift, facts, creep and steps in words.
        known: By folder, how many runs there are in all; those that are given by default.
    """
    folders = dict.fromkeys(point.folder for point in points)
    parts = (
        _of_folder(
            [p for p in points if p.folder == folder], rows or ROWS, changes.get(folder, ()), known.get(folder, 0)
        )
        for folder in folders
    )
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts)


def changes_text(changes: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """What moved in all cases: each case with its hardware, and its lines below it."""
    lines = []
    for (case, folder), found in changes.items():
        lines += [f"{case} on {folder or 'hardware that is not known'}", *(f"  {line}" for line in found)]
    return "".join(f"{printable_line(line)}\n" for line in lines)


def history_json(found: Sequence[HistoryCase] | Sequence[HistoryPoint]) -> str:
    """Everything, for machines; ``docs/history.md`` says what each key means."""
    key = "points" if found and isinstance(found[0], HistoryPoint) else "cases"
    content = {"schema": _SCHEMA, key: [asdict(one) for one in found]}
    return printable(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"


def sparkline(values: Sequence[float | None], width: int = CURVE) -> str:
    """Numbers as a line of blocks, the lowest at the least of them; a gap stands where there is none.

    Args:
        values: In order.
        width: Signs at most; of more values each sign is the mean of several that follow each other.
    """
    shown = _condensed(values, width)
    known = [value for value in shown if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = (high - low) / (len(_LEVELS) - 1)
    return "".join(" " if value is None else _LEVELS[round((value - low) / span) if span else 0] for value in shown)


def _condensed(values: Sequence[float | None], width: int) -> list[float | None]:
    count = min(len(values), width)
    found: list[float | None] = []
    for place in range(count):
        part = values[place * len(values) // count : (place + 1) * len(values) // count]
        known = [value for value in part if value is not None and math.isfinite(value)]
        found.append(math.fsum(known) / len(known) if known else None)
    return found


def _of_folder(points: Sequence[HistoryPoint], most: int, changes: Sequence[str], known: int) -> Iterator[str]:
    first, last = points[0], points[-1]
    when = _when(last.moment) if len(points) == 1 else f"{_when(first.moment)} to {_when(last.moment)}"
    yield f"{last.case} on {last.folder or 'hardware that is not known'}: {plural(len(points), 'run')}, {when}"
    yield from aligned(list(_curves(points)))
    yield ""
    if changes:
        yield from (printable_line(line) for line in changes)
        yield ""
    moved = ["", *(_moved(before, now) for before, now in pairwise(points))]
    rows = [_row(point, what) for point, what in zip(points, moved, strict=True)]
    head = ["run", "commit", "status", "against the baseline", "run_ns", "moved most since the run before", "baseline"]
    yield from aligned([head, *rows[-most:]], right={4})
    count = max(len(rows), known)
    if count > min(most, len(rows)):
        yield f"{plural(count - min(most, len(rows)), 'earlier run')}; all of them: --last {count}"


def _curves(points: Sequence[HistoryPoint]) -> Iterator[list[str]]:
    """Time as a ratio and by the clock, and each fact that was not always the same."""
    ratios = [point.ratio for point in points]
    if any(ratio is not None for ratio in ratios):
        yield ["against the baseline", sparkline(ratios), *_ends(ratios, lambda ratio: show_ratio(ratio, 1))]
    names = dict.fromkeys(name for point in points for name in point.figures)
    for name in ["run_ns", *(name for name in names if not name.endswith(_CLOCK))]:
        values = [point.figures.get(name) for point in points]
        known = {value for value in values if value is not None}
        if len(known) > 1 or (name == "run_ns" and known):
            yield [name, sparkline(values), *_ends(values, partial(show, name))]


def _ends(values: Sequence[float | None], shown: Callable[[float], str]) -> list[str]:
    """From the least to the greatest, and the last."""
    known = [value for value in values if value is not None]
    return [f"{shown(min(known))} to {shown(max(known))}", f"last {shown(known[-1])}"]


def _row(point: HistoryPoint, moved: str) -> list[str]:
    ratio = "" if point.ratio is None else show_ratio(point.ratio, 1)
    if ratio and point.low is not None and point.high is not None:
        ratio += f" [{point.low:.2f}, {point.high:.2f}]"
    status = point.status or ("unknown" if point.source == "jaxgate" else f"from {point.source}")
    run_ns = point.figures.get("run_ns")
    about = " ".join(filter(None, (point.recorded, point.elsewhere)))
    commit = (point.commit or "unknown")[:10]
    return [_when(point.moment), commit, status, ratio, "" if run_ns is None else show("run_ns", run_ns), moved, about]


def _moved(before: HistoryPoint, now: HistoryPoint) -> str:
    """The fact that is farthest from where it was; empty where none moved."""
    shared = [name for name in now.figures if name in before.figures and not name.endswith(_CLOCK)]
    moves = {name: _distance(before.figures, now.figures, name) for name in shared}
    name = max(moves, key=lambda name: moves[name], default="")
    if not name or not moves[name]:
        return ""
    values = (show(name, before.figures[name]), show(name, now.figures[name]))
    return f"{name} {' → '.join(values)}"


def _distance(before: Mapping[str, float], now: Mapping[str, float], name: str) -> float:
    """How far a fact moved, up or down, as the logarithm of a ratio; what came from nothing moved farthest."""
    if before[name] == now[name]:
        return 0.0
    if before[name] <= 0 or now[name] <= 0:
        return math.inf
    return abs(math.log(now[name] / before[name]))


def _when(moment: str) -> str:
    """Date and time to the minute, UTC: ``2026-11-25 02:30``."""
    return moment[:16].replace("T", " ")
