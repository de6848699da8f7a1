"""The cases of a page: a row of the table for each, and those that failed in full."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from urllib.parse import quote

from jaxgate.ext.page.blocks import Block, Cell, Fold, Items, Links, Table, Text, columns
from jaxgate.ext.page.drawing import Point, line_chart, strip_chart
from jaxgate.model.decision import Status
from jaxgate.model.outcome import CaseRecord, FindingRecord
from jaxgate.report.printable import aligned, printable
from jaxgate.report.units import show, show_pair, show_rate, show_ratio

_GOOD = {Status.SAME, Status.FASTER, Status.IMPROVED}
_CALM = {Status.EXPECTED, Status.UNDECIDED, Status.WAIVED, Status.NO_BASELINE, Status.STALE_BASELINE}
_MACHINE = frozenset({"trace_wait_ns", "yardstick_ns"})
"""Facts of the machine, which always move."""
_OPEN = 3
"""Failed cases that stand open."""
MOST_LINES, MOST_TEXT, MOST_DETAILED = 400, 12_000, 500
"""Lines and characters of one text; cases whose figures the table has: a page stays below 5 MB."""
LEFT_OUT = "left out here, because this page would be too large; the bundle of the case has it"
_ENDS = 2.0
"""The axis of intervals goes from half the time to twice as much; what lies beyond stands at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A case of a result, and its ``id``."""

    case: CaseRecord  # what its run says of it
    folder: str  # where the bundles of its run lie, as a path from the page
    logdir: str  # the same folder as the reader types it
    key: str

    @property
    def kind(self) -> str:
        """``bad``, ``calm`` or ``good``: its colour and its sign."""
        if self.case.fails:
            return "bad"
        return "good" if self.case.status in _GOOD else "calm" if self.case.status in _CALM else "bad"

    @property
    def word(self) -> str:
        """The status, or what this run recorded."""
        return self.case.recorded.upper() or self.case.status


def environment_of(case: CaseRecord) -> Mapping[str, str]:
    """What a case was measured with; empty if nothing was."""
    return {} if case.figures is None else case.figures.environment


def rows_of(cases: Iterable[tuple[CaseRecord, str, str]]) -> list[Row]:
    """A row for each case with the folder of its bundles, red ones first; no two have the same ``id``.

    An ``id`` of the page's own parts has no slash; a case whose name has none gets one.
    """
    taken: set[str] = set()
    rows = []
    for case, folder, logdir in sorted(cases, key=lambda one: not one[0].fails):
        name = "-".join(printable(case.case).split())
        plain = name if "/" in name else f"case/{name}"
        key = next(one for number in count(1) if (one := plain if number == 1 else f"{plain}~{number}") not in taken)
        taken.add(key)
        rows.append(Row(case=case, folder=folder, logdir=logdir, key=key))
    return rows


def told_in_full(row: Row, place: int) -> Fold:
    """A case that failed: text, suspects, single calls, what moved, the program's difference, the largest buffers."""
    case = row.case
    blocks: list[Block] = [Text(lines=cut(case.text.splitlines() or list(map(finding_text, case.findings))))]
    blocks.append(
        Links(
            links=list(_links(row)),
            command=f"jaxgate tensorboard --logdir {row.logdir}" if case.bundle and case.profiled else "",
        )
    )
    if case.causes:
        blocks.append(Items(title="Suspects, the one that explains most first", lines=case.causes, ordered=True))
    if case.operations:
        blocks.append(_operations(case))
    times = {} if case.figures is None else {"now": case.figures.times.now, "baseline": case.figures.times.stored}
    finite = {side: [time for time in values if math.isfinite(time)] for side, values in times.items()}
    if any(finite.values()):
        in_turn = case.figures is not None and case.figures.times.in_turn
        when = "taken in turn" if in_turn else "taken on two days, which decides nothing"
        sides = {side: values for side, values in finite.items() if values}
        blocks.append(strip_chart(f"Single calls, {when}", sides, show=lambda time: show("run_ns", time)))
    blocks += _growth(case)
    moved = _figures(case, moved=True)
    if moved.rows:
        blocks.append(moved)
    if case.changes:
        title = "What changed in the program since its baseline"
        blocks.append(Text(title=title, lines=cut(case.changes), difference=True))
    if case.allocations:
        blocks.append(Text(title="The largest buffers", lines=cut(case.allocations)))
    if case.figures is not None:
        blocks.append(Fold(title="All figures", blocks=[_figures(case, moved=False)]))
    return Fold(title=case.case, kind=row.kind, word=row.word, open=place < _OPEN, blocks=blocks)


def _growth(case: CaseRecord) -> Iterator[Block]:
    """The curve of each fact that another size gives otherwise than in the baseline."""
    if case.figures is None:
        return
    for size, ours in case.figures.growth.items():
        theirs = case.figures.stored_growth.get(size)
        for fact, counts in ours.facts.items():
            before = () if theirs is None else theirs.facts.get(fact, ())
            if theirs is None or not before or theirs.sizes != ours.sizes or ours.differs(theirs, fact):
                sides = {"now": (ours.sizes, counts), "baseline": (theirs.sizes if theirs else (), before)}
                lines = {
                    side: [Point(at, value, f"{at:,} {size}") for at, value in zip(*points, strict=True)]
                    for side, points in sides.items()
                    if points[1]
                }
                yield line_chart(f"{fact} over {size}", lines, show=partial(show, fact), about=case.case)


def cut(lines: Sequence[str]) -> list[str]:
    """The first lines of a text that a page has room for, and a word about the rest."""
    shown: list[str] = []
    left = MOST_TEXT
    for line in lines[:MOST_LINES]:
        left -= len(line)
        if left < 0:
            break
        shown.append(line)
    missing = len(lines) - len(shown)
    return [*shown, f"… {missing} more lines {LEFT_OUT}"] if missing else shown


def _links(row: Row) -> Iterator[tuple[str, str]]:
    yield f"#{quote(row.key, safe='/[]=,:@~')}", "its row in the table"
    if row.case.bundle and (folder := to_file(row.folder, row.case.case)):
        yield f"{folder}/report.md", "its report"
        yield folder, "its bundle"


def to_file(folder: str, name: str) -> str:
    """A link below the page's own folder, or below a folder of ours; empty if a name would lead elsewhere."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        return ""
    before = [part for part in folder.split("/") if part not in ("", ".")]
    return "/".join([".", *(quote(part, safe="") for part in (*before, *parts))])


def finding_text(finding: FindingRecord) -> str:
    """``temp_bytes 4.2 MB against 2.1 MB = 2.00 ×``; the reason of what has no numbers."""
    name = finding.name or finding.kind
    if finding.now is None or finding.against is None:
        return f"{name}: {finding.detail}" if finding.detail else name
    quantity = name.split(" ")[0]
    ratio = show_ratio(finding.now, finding.against)
    return f"{name} {show(quantity, finding.now)} against {show(quantity, finding.against)}{ratio and ' = '}{ratio}"


def number(quantity: str, value: float | None, *, bar: float | None = None) -> Cell | str:
    """A cell with a figure."""
    return "–" if value is None else Cell(text=show(quantity, value), order=value, bar=bar)


def _operations(case: CaseRecord) -> Table:
    rows: list[list[Cell | str]] = [
        [
            f"gap after {one.name}" if one.gap else one.name,
            one.line or "–",
            number("run_ns", one.now_ns),
            number("run_ns", one.other_ns),
            Cell(text=f"+{show('run_ns', one.now_ns - one.other_ns)}", order=one.now_ns - one.other_ns),
        ]
        for one in case.operations
    ]
    titles = columns("operation", "line", numbers=("now", "other side", "longer by"))
    return Table(caption="Where the time goes: operations that take longer", columns=titles, rows=rows, shown=True)


def _figures(case: CaseRecord, *, moved: bool) -> Table:
    """All figures, or all that differ from the baseline's."""
    titles = columns("quantity", numbers=("now", "baseline", "ratio", "reference"))
    caption = f"What moved in {case.case}" if moved else f"All figures of {case.case}"
    return Table(caption=caption, columns=titles, rows=list(_figure_rows(case, moved=moved)), shown=moved)


def _figure_rows(case: CaseRecord, *, moved: bool) -> Iterator[list[Cell | str]]:
    figures = case.figures
    if figures is None:
        return
    for name in dict.fromkeys((*figures.now, *figures.stored, *figures.reference)):
        now, stored, reference = figures.now.get(name), figures.stored.get(name), figures.reference.get(name)
        if moved and (now is None or stored is None or now == stored or name in _MACHINE):
            continue
        left, right = show_pair(name, now, stored)
        yield [
            name,
            "–" if now is None else Cell(text=left, order=now),
            "–" if stored is None else Cell(text=right, order=stored),
            "" if now == stored else show_ratio(now, stored),
            number(name, reference),
        ]


def all_cases(rows: Sequence[Row], environments: Sequence[Mapping[str, str]]) -> Table:
    """A row for each case of each result."""
    with_hardware = len({row.case.hardware for row in rows}) > 1
    with_findings = any(row.case.findings for row in rows)
    titles = ["case", "verdict"]
    titles += ["hardware"] if with_hardware else []
    titles += ["time against the baseline"]
    titles += ["worst finding"] if with_findings else []
    cells: list[list[Cell | str]] = []
    for row in rows:
        case = row.case
        one: list[Cell | str] = [
            Cell(text=case.case, fold=_details(case, environments, figures=len(rows) <= MOST_DETAILED), key=row.key),
            Cell(text=row.word, kind=row.kind),
        ]
        one += [case.hardware or "–"] if with_hardware else []
        one += [_time(case)]
        one += [_worst(case)] if with_findings else []
        cells.append([*one, _run(case), _against(case, "peak_bytes"), _against(case, "compile_ns")])
    counts = Counter((row.kind, row.word) for row in rows)
    statuses = [
        (kind, word, counts[kind, word])
        for kind, word in sorted(counts, key=lambda pair: ("bad", "calm", "good").index(pair[0]))
    ]
    caption = "All cases: verdict, time against the baseline with its interval, the worst finding, and the main figures with their ratios to the baseline"
    shown = columns(*titles, numbers=("a call", "peak memory", "compile time"))
    return Table(caption=caption, columns=shown, rows=cells, key="table", statuses=statuses)


def _details(case: CaseRecord, environments: Sequence[Mapping[str, str]], *, figures: bool) -> str:
    """What a case shows once it is opened: where it stands, and all its figures."""
    about = {"test": case.test, "baseline": case.baseline, "time": case.time.reason}
    if len(environments) > 1 and environment_of(case):
        about["environment"] = str(environments.index(environment_of(case)) + 1)
    lines = [f"{name:<12} {value}" for name, value in about.items() if value]
    rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in _figure_rows(case, moved=False)]
    if rows and not figures:
        lines.append("its figures are in results.json: the page of so many cases would be too large")
    elif rows:
        rows = [["", "now", "baseline", "ratio", "reference"], *rows]
        lines += aligned(rows, right=(1, 2, 3, 4))
    return "\n".join(lines) or "nothing is known of it"


def _time(case: CaseRecord) -> Cell:
    """The ratio with its interval; without a duel what was said of the time."""
    time = case.time
    if time.ratio is None:
        return Cell(text=time.reason or time.status)
    if time.low is None or time.high is None:
        return Cell(text=f"{time.ratio:.2f} ×", order=time.ratio)
    low, at, high = map(_place, (time.low, time.ratio, time.high))
    interval = f"[{time.low:.2f}, {time.high:.2f}]"
    return Cell(text=f"{time.ratio:.2f} ×", small=interval, order=time.ratio, interval=(low, at, high))


def _place(ratio: float) -> float:
    share = math.log(ratio, _ENDS) if ratio > 0 else -1.0
    return round(50 + 46 * max(-1.0, min(1.0, share)), 1)


def _worst(case: CaseRecord) -> str:
    """What decided, or moved most; empty if nothing did."""
    found = case.findings
    one = next((finding for finding in found if finding.status == case.status), found[0] if found else None)
    return "" if one is None else finding_text(one)


def figure(case: CaseRecord, quantity: str, side: str = "now") -> float | None:
    """A figure of today's program, or of another side; of a target the least time that a call can take."""
    if quantity == "least_ns":
        least = (case.roofline or {}).get("least_ns")
        return least if isinstance(least, int | float) and least and math.isfinite(least) else None
    found: float | None = None if case.figures is None else getattr(case.figures, side).get(quantity)
    return found if found is not None and math.isfinite(found) else None


def _run(case: CaseRecord) -> Cell:
    """The time of a call with its rate; the least possible one of a target."""
    if case.run_ns is not None and math.isfinite(case.run_ns):
        rate = "" if case.amount is None else show_rate(case.amount, case.run_ns)
        return Cell(text=show("run_ns", case.run_ns), order=case.run_ns, small=rate)
    least = figure(case, "least_ns")
    return Cell(text="–") if least is None else Cell(text=f"≥ {show('least_ns', least)}", order=least)


def _against(case: CaseRecord, quantity: str) -> Cell:
    """A figure with its ratio to the baseline's, where they differ."""
    now = figure(case, quantity)
    stored = None if case.figures is None else case.figures.stored.get(quantity)
    return Cell(
        text="–" if now is None else show(quantity, now),
        order=now,
        small="" if now == stored else show_ratio(now, stored),
    )
