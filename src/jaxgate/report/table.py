"""Tables as plain text: aligned columns, two spaces between them, no frame and no colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from enum import StrEnum
from io import StringIO
from typing import TypeVar

from jaxgate.model import plural
from jaxgate.report.printable import printable, printable_line

Outcome = TypeVar("Outcome", bound=StrEnum)

_WIDE = 1_000_000
"""Columns of a terminal on which nothing wraps."""


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), texts: Sequence[str] = ()) -> list[str]:
    """One line for each row, nothing wrapped or cut.

    Args:
        rows: Cells, as many in each row.
        right: Places of the columns that are aligned to the right.
        texts: What follows each row, whatever it holds; without texts no line ends in spaces.
    """
    from rich.console import Console  # noqa: PLC0415 - only who prints a table waits for it
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    if not rows:
        return []
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=True)
    for place in range(len(rows[0])):
        grid.add_column(justify="right" if place in right else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*(Text(printable_line(cell)) for cell in row))  # as it is: a name may look like markup
    out = StringIO()
    Console(file=out, width=_WIDE, color_system=None, force_jupyter=False).print(grid, crop=False)
    lines = out.getvalue().removesuffix("\n").split("\n")
    if not texts:
        return [line.rstrip() for line in lines]
    return [f"{line}{printable(text)}" for line, text in zip(lines, texts, strict=True)]


def headed(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), texts: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The same with the first cell of each line apart, padded: it is a word to colour."""
    width = max((len(row[0]) for row in rows), default=0)
    return [(line[:width], line[width:]) for line in aligned(rows, right=right, texts=texts)]


def count_outcomes(found: Collection[Outcome], kinds: type[Outcome]) -> str:
    """How many cases have each outcome, in the order of the kinds: ``3 cases: 2 MEASURED, 1 FAILED``."""
    counts = Counter(found)
    return f"{plural(len(found), 'case')}: " + ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind])
