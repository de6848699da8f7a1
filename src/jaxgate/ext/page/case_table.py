"""The table of all cases: a row each, with the little interval of its duel on an axis that all rows share.

The numbers of all cases as compact JSON: with 2,000 of them a page must stay small, and open at once.

The page's script builds what is seen of a case when somebody opens it. Of the baseline and of the reference only what
differs from today's numbers is written.

Where links of a page lead: to fragments of it and to files beside it, never to an address that a name made up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from jaxgate.ext.page.charts import Cell
from jaxgate.model.decision import Status
from jaxgate.model.outcome import CaseRecord, FindingRecord
from jaxgate.model.verdict import Figures
from jaxgate.report.units import show, show_rate, show_ratio

_GAPS = re.compile(r"\s+")
_UP = {"", ".", ".."}


def fragments(names: Iterable[tuple[str, str]]) -> list[str]:
    """The ``id`` of each row of a table: a name, with what tells it from others of that name, without gaps; no two are alike."""
    taken: set[str] = set()
    found = []
    for name, apart in names:
        plain = _GAPS.sub("-", name) or "unnamed"
        options = [plain, f"{plain}@{_GAPS.sub('-', apart)}"]
        key = next((option for option in options if option not in taken), "")
        number = 2
        while not key:
            numbered = f"{options[-1]}~{number}"
            key, number = ("" if numbered in taken else numbered), number + 1
        taken.add(key)
        found.append(key)
    return found


def to_fragment(key: str) -> str:
    """A link to an ``id`` of the same page."""
    return f"#{quote(key, safe='/[]=,:@~')}"


def to_file(folder: str, *parts: str) -> str:
    """A link to a file or a folder below the page's own, or below a folder of ours.

    Returns:
        The link; empty if a name would lead elsewhere.
    """
    names = [name for part in parts for name in part.split("/")]
    if any(name in _UP or "\\" in name or "\0" in name for name in names):
        return ""
    before = [quote(name, safe="") if name != ".." else name for name in folder.split("/") if name not in ("", ".")]
    return "/".join([".", *before, *(quote(name, safe="") for name in names)])


_GOOD = {Status.SAME, Status.FASTER, Status.IMPROVED}
_CALM = {Status.EXPECTED, Status.UNDECIDED, Status.WAIVED, Status.NO_BASELINE, Status.STALE_BASELINE}
_ENDS = 2.0
"""The shared axis goes from half the time to twice as much; what lies beyond stands at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case of one run."""

    key: str  # its `id` on the page
    link: str  # the link to that
    case: CaseRecord  # what the run says of it
    folder: str  # the run's own, as a path from the page
    logdir: str  # the same folder as the reader types it

    @property
    def word(self) -> str:
        """Its status, or what this run recorded."""
        return self.case.recorded.upper() or self.case.status

    @property
    def kind(self) -> str:
        """``bad``, ``calm`` or ``good``: its colour and its sign."""
        if self.case.fails:
            return "bad"
        return "good" if self.case.status in _GOOD else ("calm" if self.case.status in _CALM else "bad")

    @property
    def bundle(self) -> str:
        """The link to its bundle; empty if it left none."""
        return to_file(self.folder, self.case.case) if self.case.bundle else ""

    @property
    def page(self) -> str:
        """The link to the bundle's own page; empty if there is none."""
        return to_file(self.folder, self.case.case, "report.md") if self.case.bundle else ""

    @property
    def time(self) -> Cell:
        """The ratio with its interval; without a duel what was said of the time."""
        time = self.case.time
        if time.ratio is None:
            return Cell(text=time.reason or time.status)
        interval = f" [{time.low:.2f}, {time.high:.2f}]" if time.low is not None and time.high is not None else ""
        return Cell(text=f"{time.ratio:.2f} ×{interval}", order=time.ratio)

    @property
    def interval(self) -> Mapping[str, float] | None:
        """Where the interval stands on the shared axis, in hundredths of it; ``None`` without a duel."""
        time = self.case.time
        if time.ratio is None or time.low is None or time.high is None:
            return None
        return {name: _place(value) for name, value in (("at", time.ratio), ("low", time.low), ("high", time.high))}

    @property
    def worst(self) -> str:
        """What decided, or moved most; empty if nothing did."""
        found = self.case.findings
        one = next((finding for finding in found if finding.status == self.case.status), found[0] if found else None)
        return "" if one is None else finding_text(one)

    @property
    def run(self) -> Cell:
        """The time of a call; of a target the least that it can be."""
        run_ns = self.case.run_ns
        if run_ns is not None:
            return Cell(text=show("run_ns", run_ns), order=run_ns)
        least = (self.case.roofline or {}).get("least_ns")
        if isinstance(least, int | float) and least:
            return Cell(text=f"≥ {show('least_ns', least)}", order=least)
        return Cell(text="–")

    @property
    def rate(self) -> str:
        """What gets done in a second; empty if that is not known."""
        amount, run_ns = self.case.amount, self.case.run_ns
        return "" if amount is None or run_ns is None else show_rate(amount, run_ns)

    def against(self, quantity: str) -> Cell:
        """A quantity of today's program."""
        figures = self.case.figures
        now = None if figures is None else figures.now.get(quantity)
        return Cell(text="–" if now is None else show(quantity, now), order=now)

    def ratio(self, quantity: str) -> str:
        """That quantity as a multiple of the baseline's; empty if it is the same, or one is not known."""
        figures = self.case.figures
        if figures is None or figures.now.get(quantity) == figures.stored.get(quantity):
            return ""
        return show_ratio(figures.now.get(quantity), figures.stored.get(quantity))


def _place(ratio: float) -> float:
    share = math.log(ratio, _ENDS) if ratio > 0 else -1.0
    return round(50 + 46 * max(-1.0, min(1.0, share)), 1)


def finding_text(finding: FindingRecord) -> str:
    """``temp_bytes 4.2 MB against 2.1 MB = 2.00 ×``; the reason of what has no numbers."""
    name = finding.name or finding.kind
    if finding.now is None or finding.against is None:
        return f"{name}: {finding.detail}" if finding.detail else name
    quantity = name.split(" ")[0]
    ratio = show_ratio(finding.now, finding.against)
    return f"{name} {show(quantity, finding.now)} against {show(quantity, finding.against)}{ratio and ' = '}{ratio}"


def rows_of(runs: Sequence[tuple[Sequence[CaseRecord], str, str]]) -> tuple[Row, ...]:
    """A row for each case of each run, red ones first.

    Args:
        runs: The cases of each run, its folder as a path from the page, and as the reader types it.
    """
    cases = [(case, folder, logdir) for cases, folder, logdir in runs for case in cases]
    cases.sort(key=lambda one: not one[0].fails)
    keys = fragments((case.case, case.hardware or "") for case, *_ in cases)
    return tuple(
        Row(key=key, link=to_fragment(key), case=case, folder=folder, logdir=logdir)
        for key, (case, folder, logdir) in zip(keys, cases, strict=True)
    )


def table_values(rows: Sequence[Row], *, with_hardware: bool) -> dict[str, Any]:
    """What the template of the table is given."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        counts[row.word, row.kind] = counts.get((row.word, row.kind), 0) + 1
    order = ("bad", "calm", "good")
    statuses = [
        {"word": word, "kind": kind, "count": count}
        for (word, kind), count in sorted(counts.items(), key=lambda pair: order.index(pair[0][1]))
    ]
    return {
        "rows": rows,
        "statuses": statuses,
        "with_hardware": with_hardware,
        "with_duels": any(row.interval for row in rows),
        "with_findings": any(row.worst for row in rows),
    }


_DIGITS = 4
"""Of the time of a single call: more than a chart shows."""
MOST_CALLS = 60
"""Strokes in one line of a chart; of more calls every so manieth is drawn."""
MOST_TEXT = 1_500_000
"""Characters of failure texts and differences of programs on a page: the bundles have them whole."""
_LEAST_TEXT = 300_000
_BYTES_OF_A_CASE = 600
"""By so much less: 2,000 cases, each with calls of two sides, have 4.4 MB with the library, and 5 MB are the limit."""
MOST_LINES = 400
"""Of one difference."""
LEFT_OUT = "left out here, because this page would be too large; the bundle of the case has it"


class TextBudget:
    """How much of the long texts a page still has room for; what comes first is shown first."""

    def __init__(self, characters: int = MOST_TEXT) -> None:
        self._left = characters

    @classmethod
    def beside(cls, cases: int) -> TextBudget:
        """What is left beside the rows and the figures of so many cases."""
        return cls(max(_LEAST_TEXT, MOST_TEXT - cases * _BYTES_OF_A_CASE))

    def lines(self, lines: Sequence[str]) -> list[str]:
        """The first lines of a text that there is room for, with a word about the rest."""
        shown: list[str] = []
        for line in lines[:MOST_LINES]:
            if len(line) > self._left:
                self._left = 0
                break
            self._left -= len(line)
            shown.append(line)
        left = len(lines) - len(shown)
        return [*shown, f"… {left} more lines {LEFT_OUT}"] if left else shown

    def text(self, text: str) -> str:
        """The same of a text in one piece."""
        return "\n".join(self.lines(text.splitlines()))


def case_data(
    rows: Sequence[Row], environments: Sequence[Mapping[str, str]], *, already: Mapping[str, Any], budget: TextBudget
) -> dict[str, Any]:
    """All cases, in the order of the table.

    Args:
        rows: The rows of the table.
        environments: Those of the page, in the order in which it numbers them.
        already: Keys of the cases whose words stand on the page.
        budget: Room for the words of the others.
    """
    names: dict[str, int] = {}
    shared = Shared()
    numbers = {_sorted(one): place for place, one in enumerate(environments)}
    cases = []
    for row in rows:
        case = row.case
        one: dict[str, Any] = {"test": case.test}
        one |= {
            key: shared.place(text) for key, text in (("baseline", case.baseline), ("time", case.time.reason)) if text
        }
        if row.bundle:
            one |= {"bundle": row.bundle, "page": row.page}
            one |= {"logdir": shared.place(row.logdir)} if case.profiled else {}
        if row.key not in already:
            one |= {
                "text": budget.text(case.text),
                "causes": list(case.causes),
                "changes": budget.lines(case.changes),
                "buffers": budget.lines(case.allocations),
            }
        one |= _duel(case)
        if case.figures is not None:
            one |= _figures(case.figures, names, shared)
            if len(environments) > 1 and case.figures.environment:
                one["environment"] = numbers[_sorted(case.figures.environment)]
        cases.append({key: value for key, value in one.items() if value not in ("", [], None, {})})
    return {
        "names": list(names),
        "layouts": [list(layout) for layout in shared.layouts],
        "words": list(shared.words),
        "cases": cases,
    }


@dataclass(slots=True)
class Shared:
    """What many cases have in common stands once: texts, and the names of the figures that a case has."""

    words: dict[str, int] = field(default_factory=dict)
    layouts: dict[tuple[int, ...], int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """The place of a text among those that stand once."""
        return self.words.setdefault(text, len(self.words))


def _sorted(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(environment.items()))


def _duel(case: CaseRecord) -> dict[str, Any]:
    time = case.time
    if time.ratio is None:
        return {}
    numbers = (time.ratio, time.low, time.high, time.margin, time.sees, time.pairs)
    shown = [None if number is None else round(number, 5) for number in numbers]
    return {"duel": shown, "confirmed": [round(ratio, 4) for ratio in time.confirmed]}


def _figures(figures: Figures, names: dict[str, int], shared: Shared) -> dict[str, Any]:
    """Today's numbers after the place of their layout; of the others what differs, ``null`` for unknown."""
    for side in (figures.now, figures.stored, figures.reference):
        for name in side:
            names.setdefault(name, len(names))
    layout = shared.layouts.setdefault(tuple(names[name] for name in figures.now), len(shared.layouts))
    found: dict[str, Any] = {"now": [layout, *map(_number, figures.now.values())]}
    if figures.stored:
        found["stored"] = _apart(figures.now, figures.stored, names)
    if figures.reference:
        found["reference"] = _apart(figures.now, figures.reference, names)
    found |= {"known": (bool(figures.stored) << 1) | bool(figures.reference)}
    if figures.times.now or figures.times.stored:
        found["calls"] = [_calls(figures.times.now), _calls(figures.times.stored), int(figures.times.in_turn)]
    return found


def _pairs(side: Mapping[str, float], names: Mapping[str, int]) -> list[float | None]:
    flat: list[float | None] = []
    for name, value in side.items():
        flat += [names[name], _number(value)]
    return flat


def _apart(now: Mapping[str, float], other: Mapping[str, float], names: Mapping[str, int]) -> list[float | None]:
    """What differs from today's, and ``null`` where today's is known and the other's is not."""
    flat = _pairs({name: value for name, value in other.items() if now.get(name) != value}, names)
    for name in now:
        if name not in other:
            flat += [names[name], None]
    return flat


def _number(value: float) -> float:
    """A whole number where it is one; else five digits."""
    return int(value) if value == int(value) else float(f"{value:.5g}")


def _calls(times: Sequence[float]) -> list[int]:
    """A power of ten, how many calls there are, and the times of some of them in that power, of four digits each."""
    step = max(1, -(-len(times) // MOST_CALLS))
    shown = [time for time in times[::step] if math.isfinite(time)]
    power = max(0, math.floor(math.log10(max(shown))) - _DIGITS + 1) if shown and max(shown) > 0 else 0
    return [power, len(times), *(round(time / 10**power) for time in shown)]
