"""Where the time of a step goes, for people: three rows in the failure text, all rows in the report."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxgate.ext.profile.model import MOST, Capture, Communication, OpTable, RankTimes
from jaxgate.model.decision import ALWAYS_FAIL, Status
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural
from jaxgate.report.printable import aligned, code
from jaxgate.report.units import show, show_share

_UNEVEN = 0.05
"""Share of a step: by less than this ranks wait by chance."""
_NAME_WIDTH = 48


def culprit_rows(table: OpTable) -> list[str]:
    """The rows that explain most of a longer step, aligned: ``softmax/exp  model.py:41  0.8 → 3.1 ms  (+2.3 of +2.4 ms)``."""
    rows, against = table.culprits, "" if table.other == "baseline" else f" more than the {table.other}"
    cells = [(_short(row.name), row.line, f"{show('ns', row.other_ns)} → {show('ns', row.now_ns)}") for row in rows]
    columns = [column for column in zip(*cells, strict=True) if any(column)]
    whole = f"{_more(table.more_ns)}{against}"
    if sum(row.more_ns for row in rows) > table.more_ns:  # others got quicker: of all that grew it is a part
        whole = f"{_more(table.grown_ns)} that grew, the step {whole}"
    texts = [f"({_more(row.more_ns)} of {whole})" for row in rows]
    return aligned(list(zip(*columns, strict=True)), texts=texts)


def step_line(table: OpTable) -> str:
    """The profiled step as a whole, in one line."""
    if not table.other:
        return f"a profiled step takes {show('ns', table.now_ns)}"
    return f"a profiled step takes {show('ns', table.now_ns)}, that of the {table.other} {show('ns', table.other_ns)}"


def communication_line(table: OpTable) -> str:
    """How long collectives take in a step, and what of it makes the step longer; empty where that is not known."""
    found = _communication(table.communication, table.now_ns)
    other = _communication(table.other_communication, table.other_ns)
    if not found:
        return ""
    return f"communication takes {found}" + (f"; that of the {table.other} {other}" if other else "")


def _communication(found: Communication | None, step_ns: float) -> str:
    if found is None:
        return ""
    if found.overlap is None:
        return "no time"
    exposed = f"{show('ns', found.exposed_ns)} exposed ({show_share(found.exposed_ns / step_ns)} of the step)"
    return f"{show('ns', found.total_ns)}, {exposed}, {show_share(found.overlap)} beside computation"


def rank_table(ranks: Sequence[RankTimes]) -> str:
    """A step of each rank. The others wait for the rank that waits least in collectives."""
    lines = ["| rank | step | works | in collectives | most of it in |", "|---|--:|--:|--:|---|"]
    for each in ranks:
        waits = None if each.communication is None else each.communication.exposed_ns
        parts = ("", "") if waits is None else (show("ns", each.step_ns - waits), show("ns", waits))
        lines.append(f"| {each.rank} | {show('ns', each.step_ns)} | {parts[0]} | {parts[1]} | {code(each.waits_in)} |")
    return "\n".join(lines)


def waited_for(ranks: Sequence[RankTimes]) -> str:
    """The rank that the others wait for, in a sentence; empty where all wait alike."""
    waits = [(each.communication.exposed_ns, each) for each in ranks if each.communication is not None]
    if not waits or len(waits) < len(ranks):
        return ""
    (least, last), *others = sorted(waits, key=lambda one: one[0])
    if min((other for other, _ in others), default=least) - least < _UNEVEN * last.step_ns:
        return ""
    return f"the others wait for {last.rank}, which works longest"


def markdown_table(table: OpTable) -> str:
    """All rows beyond the floor, what was folded, and the sum."""
    if not table.other:
        lines = ["| operation | line | now |", "|---|---|--:|"]
        rows = sorted(table.rows, key=lambda row: -row.now_ns)
        lines += [f"| {code(row.name)} | {code(row.line)} | {show('ns', row.now_ns)} |" for row in rows]
        lines += _folded(table, f"{show('ns', table.folded_now_ns)} |")
        return "\n".join([*lines, f"| **step** | | **{show('ns', table.now_ns)}** |"])
    lines = [f"| operation | line | {table.other} | now | difference |", "|---|---|--:|--:|--:|"]
    for row in table.rows:
        times = f"{show('ns', row.other_ns)} | {show('ns', row.now_ns)} | {_more(row.more_ns)}"
        lines.append(f"| {code(row.name)} | {code(row.line)} | {times} |")
    difference = _more(table.folded_now_ns - table.folded_other_ns)
    lines += _folded(table, f"{show('ns', table.folded_other_ns)} | {show('ns', table.folded_now_ns)} | {difference} |")
    total = f"**{show('ns', table.other_ns)}** | **{show('ns', table.now_ns)}** | **{_more(table.more_ns)}**"
    return "\n".join([*lines, f"| **step** | | {total} |"])


def _folded(table: OpTable, cells: str) -> list[str]:
    if not table.folded:
        return []
    one, many = ("differs by", "differ by") if table.other else ("takes", "take")
    rows = plural(table.folded, f"row that {one}", f"rows that {many}")
    return [f"| *{rows} less than the measured floor of {show('ns', table.floor_ns)}* | | {cells}"]


def _more(nanoseconds: float) -> str:
    return f"{'+' if nanoseconds >= 0 else '−'}{show('ns', abs(nanoseconds))}"


def _short(name: str) -> str:
    """The end of a long name says most: the primitive and its nearest scopes."""
    if len(name) <= _NAME_WIDTH:
        return name
    return f"…{name[-_NAME_WIDTH + 1 :]}"


def blame(verdict: Verdict, by_facts: str) -> list[tuple[str, str]]:
    """Rows of a failure text, each a label and its text: the culprit first, then the other account, then the bundle."""
    table = None if verdict.evidence.capture is None else verdict.evidence.capture.table
    rows = [] if table is None else culprit_rows(table)
    leads = bool(rows) and table is not None and _leads(verdict, table)
    shown = [("culprit" if leads else "profile", rows[0]), *(("", row) for row in rows[1:])] if rows else []
    accused = [("program" if leads else "culprit", by_facts)] if by_facts else []
    lines = [*shown, *accused] if leads else [*accused, *shown]
    return lines if verdict.evidence.capture is None else [*lines, ("bundle", _bundle(verdict.evidence.capture))]


def _leads(verdict: Verdict, table: OpTable) -> bool:
    """Whether operations are the culprit: a duel found the case slower than what was profiled beside it.

    Facts come before rows: an operation leads where nothing was counted that explains what is red, where the clock alone is
    red and one operation takes most of the longer time, or where a guess names its line, too. A pause never does.
    """
    if verdict.time.status is not Status.SLOWER or table.other != "baseline":
        return False
    if not verdict.causes:
        return True
    first, row = verdict.causes[0], table.culprits[0]
    red = [finding for finding in verdict.findings if finding.status in ALWAYS_FAIL]
    only_time = bool(red) and all(finding.kind == "time" for finding in red)
    if row.gap or first.root:
        return False
    if not first.sure:
        return only_time or (bool(row.line) and re.search(rf"{re.escape(row.line)}(?!\d)", first.text) is not None)
    return only_time and row.more_ns >= MOST * table.more_ns


def _bundle(capture: Capture) -> str:
    """Where the bundle is, and what it lacks for what reason."""
    where = f"{capture.folder}/report.md" if capture.folder else "none"
    missing = "; ".join(capture.notes) if capture.table is None or capture.incomplete else ""
    return f"{where} ({missing})" if missing else where
