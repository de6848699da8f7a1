"""The table of all cases: a row each, with the little interval of its duel on an axis that all rows share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxgate.model import CaseRecord, FindingRecord, Status
from jaxgate.report import show, show_rate, show_ratio
from jaxgate.report.page.addresses import fragments, to_file, to_fragment
from jaxgate.report.page.parts import Cell

_GOOD = {Status.SAME, Status.FASTER, Status.IMPROVED}
_CALM = {Status.EXPECTED, Status.UNDECIDED, Status.WAIVED, Status.NO_BASELINE, Status.STALE_BASELINE}
_ENDS = 2.0
"""The shared axis goes from half the time to twice as much; what lies beyond stands at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case of one run.

    Attributes:
        key: Its ``id`` on the page.
        link: The link to that.
        case: What the run says of it.
        folder: The run's own, as a path from the page.
        logdir: The same folder as the reader types it.
    """

    key: str
    link: str
    case: CaseRecord
    folder: str
    logdir: str

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
