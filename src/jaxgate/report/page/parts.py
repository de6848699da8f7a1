"""What a page is made of: sections, tables and charts, as plain data. The templates say what they look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Spec = dict[str, Any]
"""A chart in Vega-Lite's language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; numbers stand to the right, and are sorted as such."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell.

    Attributes:
        text: What it shows.
        order: What it is sorted by, where that is not its text.
    """

    text: str
    order: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; the first cell of each row is the row's heading.

    Attributes:
        caption: What it is a table of: screen readers say it first.
        shown: Whether the caption is seen, too.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]
    shown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart. A table beside it has the same numbers, for who cannot see it and where scripts are blocked.

    Attributes:
        key: Names it on its page, as in ``id``.
        title: What it shows, as its heading.
        spec: Its specification, with its data.
        label: What it shows, in a sentence, for a screen reader.
    """

    key: str
    title: str
    spec: Spec
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Charts about one thing, and one table with the numbers of them all."""

    title: str
    charts: Sequence[Chart]
    table: Table
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page, with a heading that the page's navigation leads to.

    Attributes:
        key: Its fragment.
        title: Its heading.
        template: The file among the templates that shows it.
        values: What that file is given, as ``it``.
        charts: The charts that it has a place for.
    """

    key: str
    title: str
    template: str
    values: Mapping[str, Any]
    charts: Sequence[Chart] = field(default_factory=tuple)
