"""The page of two sides beside each other: a table of all facts that differ, and one of the times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

from jaxgate.ext.diff.model import CaseDiff, QuantityDiff, RunDiff
from jaxgate.ext.page.charts import Cell, Column, Section, Table
from jaxgate.ext.page.document import document
from jaxgate.report.units import show_pair, show_ratio


def diff_document(diff: RunDiff, lines: Sequence[str]) -> str:
    """Put the page together.

    Args:
        diff: The two sides.
        lines: What is said of both as a whole: counts, what only one side has, times.

    Returns:
        HTML in one file.
    """
    tables = [
        _table("Facts that differ, the largest difference first", [(c, one) for c in diff.cases for one in c.facts]),
        _table("Times of two moments, not judged", [(c, one) for c in diff.cases for one in c.times if one.ratio != 1]),
    ]
    first, second = diff.first, diff.second
    about = [f"first: {first.name}, {first.about}", f"second: {second.name}, {second.about}", *lines]
    sections = [
        Section(key="sides", title="Both sides", template="tables.html", values={"lines": about, "charts": (), "tables": ()}),
        *_sections(("facts", "Facts"), tables[0]),
        *_sections(("times", "Times"), tables[1]),
    ]  # fmt: skip
    return document(title=f"jaxgate: {first.name} and {second.name} side by side", sections=sections, library="")


def _sections(named: tuple[str, str], table: Table) -> Iterator[Section]:
    if table.rows:
        key, title = named
        values = {"lines": (), "charts": (), "tables": [table]}
        yield Section(key=key, title=title, template="tables.html", values=values)


def _table(caption: str, found: Sequence[tuple[CaseDiff, QuantityDiff]]) -> Table:
    columns = [
        Column(title="case"),
        Column(title="quantity"),
        Column(title="way"),
        *(Column(title=title, number=True) for title in ("first", "second", "ratio")),
    ]
    return Table(caption=caption, columns=columns, rows=[_row(case, one) for case, one in found], shown=True)


def _row(case: CaseDiff, one: QuantityDiff) -> list[Cell | str]:
    first, second = show_pair(one.name, one.first, one.second)
    ratio = Cell(text=show_ratio(one.second, one.first), order=log(one.ratio) if one.ratio else None)
    return [
        case.case,
        one.name,
        str(one.way),
        Cell(text=first, order=one.first),
        Cell(text=second, order=one.second),
        ratio,
    ]
