"""What a page is made of, as plain data; the template says what each block looks like, and escapes every text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; numbers stand to the right, and are sorted as such."""

    title: str
    number: bool = False


def columns(*titles: str, numbers: Iterable[str] = ()) -> list[Column]:
    """Columns of words, then columns of numbers."""
    return [*(Column(title=one) for one in titles), *(Column(title=one, number=True) for one in numbers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table."""

    text: str
    order: float | None = None  # what it is sorted by, where that is not its text
    small: str = ""  # a second line
    kind: str = ""  # `bad`, `calm` or `good`: it is a verdict
    bar: float | None = None  # length of a bar below the number, from 0 to 1
    # a duel's interval: low, ratio and high, in hundredths of an axis whose middle is the baseline's time
    interval: tuple[float, float, float] | None = None
    fold: str = ""  # what the cell shows once it is opened
    key: str = ""  # its `id`, which a link leads to


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; the first cell of each row is the row's heading."""

    form: ClassVar[str] = "table"
    caption: str  # what it is a table of: screen readers say it first
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]
    shown: bool = False  # whether the caption is seen, too
    key: str = ""  # its `id`; a table that has one can be searched
    statuses: Sequence[tuple[str, str, int]] = ()  # verdicts that its rows can be narrowed to: kind, word, how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Lines as they are; of a difference with the colour of what came and went."""

    form: ClassVar[str] = "text"
    lines: Sequence[str]
    title: str = ""
    difference: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list, numbered where its order says something."""

    form: ClassVar[str] = "items"
    lines: Sequence[str]
    title: str = ""
    ordered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where else to look: addresses with their words, and a command to type."""

    form: ClassVar[str] = "links"
    links: Sequence[tuple[str, str]]
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """Names and values."""

    form: ClassVar[str] = "properties"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines with points, or strokes, drawn as SVG; places are pixels of its own."""

    form: ClassVar[str] = "chart"
    title: str
    label: str  # what it shows, in a sentence, for a screen reader
    width: int
    height: int
    lines: Sequence[Line]
    across: Sequence[tuple[float, str]] = ()  # ticks of the axis below: place and words
    up: Sequence[tuple[float, str]] = ()  # ticks of the axis beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart."""

    name: str  # in the legend
    colour: str  # class of the style: `c1` to `c8`
    path: str  # the line, as SVG writes it
    points: Sequence[tuple[float, float, str]] = ()  # places, and words that are shown over them


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that can be folded away below a heading."""

    form: ClassVar[str] = "fold"
    title: str
    blocks: Sequence[Block]
    open: bool = False
    kind: str = ""  # `bad`, `calm` or `good`, where a verdict stands before the heading
    word: str = ""  # that verdict


Block = Table | Text | Items | Links | Properties | Chart | Fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page, with a heading that the page's navigation leads to."""

    key: str  # its fragment
    title: str
    blocks: Sequence[Block]
    note: str = ""
