"""The page of two sides beside each other: a table of all facts that differ, and one of the times."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from jaxgate.ext.diff.model import CaseDiff, QuantityDiff, RunDiff
from jaxgate.ext.page.blocks import Cell, Column, Items, Section, Table
from jaxgate.ext.page.document import document
from jaxgate.report.units import show_pair, show_ratio


def diff_document(diff: RunDiff, lines: Sequence[str]) -> str:
    """HTML in one file; ``lines`` are said of both sides as a whole: counts, what only one side has, times."""
    tables = {
        "Facts that differ, the largest difference first": [(c, one) for c in diff.cases for one in c.facts],
        "Times of two moments, not judged": [(c, one) for c in diff.cases for one in c.times if one.ratio != 1],
    }
    first, second = diff.first, diff.second
    about = [f"first: {first.name}, {first.about}", f"second: {second.name}, {second.about}", *lines]
    sections = [Section(key="sides", title="Both sides", blocks=[Items(lines=about)])]
    for caption, found in tables.items():
        if found:
            title = caption.partition(" ")[0]
            sections.append(Section(key=title.lower(), title=title, blocks=[_table(caption, found)]))
    return document(title=f"jaxgate: {first.name} and {second.name} side by side", sections=sections)


def _table(caption: str, found: Sequence[tuple[CaseDiff, QuantityDiff]]) -> Table:
    columns = [Column(title=title) for title in ("case", "quantity", "way")]
    columns += [Column(title=title, number=True) for title in ("first", "second", "ratio")]
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
