"""The history of a case in the terminal: a curve of each quantity that moved, a row for each run, and what moved in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any

from jaxgate.ext.history.drift import CaseChanges, Creep, Drift, FactDrift, Step
from jaxgate.ext.history.model import HistoryCase, HistoryPoint
from jaxgate.model.verdict import Finding
from jaxgate.model.waiver import TIME
from jaxgate.model.words import plural, shortlist
from jaxgate.report.printable import aligned, printable_line
from jaxgate.report.units import show, show_pair, show_ratio

CURVE = 60
"""Signs of a curve; of a longer history each stands for several runs."""
ROWS = 20
"""Runs of the table, unless more were asked for."""
_LEVELS = "▁▂▃▄▅▆▇█"
_CLOCK = "_ns"


def history_list(cases: Sequence[HistoryCase]) -> str:
    """All cases, a row each."""
    rows = [["case", "hardware and jax", "runs", "last status", "last run"]]
    rows += [[c.case, c.folder or "unknown", f"{c.runs}", c.status or "unknown", when(c.moment)] for c in cases]
    return "".join(f"{line}\n" for line in aligned(rows, right={2}))


def history_text(
    points: Sequence[HistoryPoint], rows: int | None, changes: Mapping[str, Sequence[str]], known: Mapping[str, int]
) -> str:
    """The history of one case: for each hardware and release line the curves, what moved in words, then the table.

    Runs are given oldest first; each table shows the newest ``rows``. ``known`` counts by folder all runs that there are.
    """
    parts = []
    for folder in dict.fromkeys(point.folder for point in points):
        own = [point for point in points if point.folder == folder]
        lines = _of_folder(own, rows or ROWS, changes.get(folder, ()), known.get(folder, 0))
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


def changes_text(changes: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """What moved in all cases: each case with its hardware, and its lines below it."""
    lines = []
    for (case, folder), found in changes.items():
        lines += [f"{case} on {folder or 'hardware that is not known'}", *(f"  {line}" for line in found)]
    return "".join(f"{printable_line(line)}\n" for line in lines)


def history_json(found: Sequence[HistoryCase] | Sequence[HistoryPoint]) -> dict[str, Any]:
    """Everything, for machines; ``docs/history.md`` says what each key means."""
    key = "points" if found and isinstance(found[0], HistoryPoint) else "cases"
    return {key: [asdict(one) for one in found]}


def sparkline(values: Sequence[float | None], width: int = CURVE) -> str:
    """Numbers as a line of blocks, the lowest at the least of them; a gap stands where there is none.

    Of more values than ``width`` each sign is the mean of several that follow each other.
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
    shown = when(last.moment) if len(points) == 1 else f"{when(first.moment)} to {when(last.moment)}"
    yield f"{last.case} on {last.folder or 'hardware that is not known'}: {plural(len(points), 'run')}, {shown}"
    yield from aligned(list(_curves(points)))
    yield ""
    if changes:
        yield from (printable_line(line) for line in changes)
        yield ""
    moved = ["", *(_moved(before, now) for before, now in pairwise(points))]
    rows = [_row(point, what) for point, what in zip(points, moved, strict=True)]
    head = ["run", "commit", "status", "against the baseline", "run_ns", "moved most since the run before", "baseline"]
    yield from aligned([head, *rows[-most:]], right={4})
    count, shown_rows = max(len(rows), known), min(most, len(rows))
    if count > shown_rows:
        yield f"{plural(count - shown_rows, 'earlier run')}; all of them: --last {count}"


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
    status = point.status or ("unknown" if point.source == "jaxgate" else f"from {point.source}")
    run_ns = show("run_ns", point.figures["run_ns"]) if "run_ns" in point.figures else ""
    commit = (point.commit or "unknown")[:10]
    return [when(point.moment), commit, status, ratio_text(point), run_ns, moved, what_it_was(point)]


def ratio_text(point: HistoryPoint) -> str:
    """The ratio to the baseline with its interval; empty where none is known."""
    if point.ratio is None:
        return ""
    bounds = "" if point.low is None or point.high is None else f" [{point.low:.2f}, {point.high:.2f}]"
    return f"{show_ratio(point.ratio, 1)}{bounds}"


def what_it_was(point: HistoryPoint) -> str:
    """What a run recorded, and what it was held against instead of stored baselines."""
    return " ".join(filter(None, (point.recorded, point.elsewhere)))


def _moved(before: HistoryPoint, now: HistoryPoint) -> str:
    """The fact that is farthest from where it was; empty where none moved."""
    moves = {
        name: _distance(before.figures[name], value)
        for name, value in now.figures.items()
        if name in before.figures and not name.endswith(_CLOCK)
    }
    name = max(moves, key=lambda name: moves[name], default="")
    if not moves.get(name):
        return ""
    return f"{name} {show(name, before.figures[name])} → {show(name, now.figures[name])}"


def _distance(before: float, now: float) -> float:
    """How far a fact moved, up or down, as the logarithm of a ratio; what came from nothing moved farthest."""
    if before == now:
        return 0.0
    return abs(math.log(now / before)) if before > 0 and now > 0 else math.inf


def when(moment: str) -> str:
    """Date and time to the minute, UTC: ``2026-11-25 02:30``."""
    return moment[:16].replace("T", " ")


COMMIT = 7
"""Digits of a commit that are shown."""
MAX_DIFFERENCES = 3
_WHOLE_PERCENT = 10


def change_lines(changes: CaseChanges) -> list[str]:
    """All that a history shows, a line each: drift, facts, creep, steps with the newest first."""
    drift = [] if changes.drift is None else [f"time: {drift_line(changes.drift)}"]
    lines = [*drift, *map(fact_drift_line, changes.facts), *map(creep_line, changes.creeps)]
    return [*lines, *map(step_line, reversed(changes.steps))]


def drift_line(drift: Drift) -> str:
    """What a case's time became over its refreshes.

    ``0.8 % a step over the last 12 accepted refreshes: 10 % [8, 12] since 2026-03-02; each was within its tolerance (commits
    1a2b3c4 … 9f8e7d6)``.
    """
    total = f"{_total(drift.ratio, drift.low, drift.high)} since {drift.since}"
    known = f"; {drift.gap}" if drift.gap else ""
    today = "; today's own time is not known, this is its baseline's" if drift.until_baseline else ""
    count = len(drift.accepted)
    if not count:
        return f"{total}, against the first baseline{today}{known}"
    refreshes = f"the last {count} accepted refreshes" if count > 1 else "one accepted refresh"
    beyond = sum(not one.within for one in drift.accepted)
    each = f"{beyond} of {count} beyond the gate's margin" if beyond else "each was within its tolerance"
    where = _commits([one.commit for one in drift.accepted])
    return f"{_percent(drift.step)} % a step over {refreshes}: {total}; {each}{where}{today}{known}"


def fact_drift_line(drift: FactDrift) -> str:
    """What a fact became: ``temp_bytes 1.05 MB → 1.31 MB = 1.25 × in 4 steps since 2026-03-02``."""
    changed = f" ({shortlist(drift.environment, MAX_DIFFERENCES)})" if drift.environment else ""
    moves = f"{_move(drift.name, drift.first, drift.now)} in {plural(drift.steps, 'step')}"
    return f"{moves} since {drift.since}{changed}"


def step_line(step: Step) -> str:
    """Where a quantity moved: ``time 5.1 % up on 2026-06-01 (commit 1a2b3c4, not yet in 0f9e8d7), in 3 runs since``."""
    if step.before is None or step.after is None:
        size = _percent(1 + abs(step.ratio - 1))
        what = f"{step.quantity} {size} % {'up' if step.ratio > 1 else 'down'}"
    else:
        what = _move(step.quantity, step.before, step.after)
    known = [f"commit {step.commit[:COMMIT]}"] if step.commit else []
    if step.last_before:
        same = step.last_before == step.commit
        known.append("or not committed then" if same else f"not yet in {step.last_before[:COMMIT]}")
    where = f" ({', '.join(known)})" if known else ""
    return f"{what} on {step.moment[:10]}{where}, in {plural(step.runs, 'run')} since"


def _move(quantity: str, before: float, after: float) -> str:
    """``temp_bytes 1 MB → 2 MB = 2.00 ×``; from nothing there is no ratio."""
    first, now = show_pair(quantity, before, after)
    ratio = show_ratio(after, before)
    return f"{quantity} {first} → {now}{f' = {ratio}' if ratio else ''}"


def creep_line(creep: Creep) -> str:
    """What went on slowly: ``time creeps: 3.2 % [2, 4.4] in 40 runs since 2026-03-02, no single step (commits …)``."""
    what = "time" if creep.quantity == TIME else creep.quantity
    total = _total(creep.ratio, creep.low, creep.high)
    since = f"in {plural(creep.runs, 'run')} since {creep.since[:10]}"
    return f"{what} creeps: {total} {since}, no single step{_commits(list(creep.commits))}"


def accepted_figure(finding: Finding) -> str:
    """The worst figure that a refresh accepted: ``temp_bytes 24 kB against 20 kB = 1.20 ×``, short enough for the log."""
    quantity = finding.name.partition(" ")[0]
    now, against = show_pair(quantity, finding.now, finding.against)
    ratio = show_ratio(finding.now, finding.against)
    what = "a call takes" if finding.kind == "time" else quantity
    return f"{what} {now} against {against}{f' = {ratio}' if ratio else ''}"


def describe_drift(finding: Finding) -> str:
    """A finding about drift: what was lost, and what the budget is."""
    drift, detail = finding.drift, f"; {finding.detail}" if finding.detail else ""
    if isinstance(drift, FactDrift):
        return f"drift: {fact_drift_line(drift)}, allowed {show(drift.name, finding.allowed)} in all{detail}"
    if isinstance(drift, Drift) and finding.allowed is not None:
        return f"drift: {drift_line(drift)}, budget {_percent(finding.allowed)} %{detail}"
    return f"drift: {finding.detail}"


def _total(ratio: float, low: float, high: float) -> str:
    return f"{_percent(ratio)} % [{_percent(low)}, {_percent(high)}]"


def _percent(ratio: float) -> str:
    percent = (ratio - 1) * 100
    text = f"{percent:.0f}" if abs(percent) >= _WHOLE_PERCENT else f"{percent:.1f}"
    return text.removesuffix(".0") if text not in ("-0.0", "-0") else "0"


def _commits(commits: list[str | None]) -> str:
    known = [commit[:COMMIT] for commit in commits if commit]
    if not known:
        return ""
    return f" (commit {known[0]})" if len(known) == 1 else f" (commits {known[0]} … {known[-1]})"
