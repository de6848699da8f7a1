"""Text that shows itself and does nothing else, in a terminal, a log, a page or a table.

Names of files and cases, commits and reasons come from whoever opened the pull request: a control character among them
would clear the screen, hide what is red, or turn around the order of what is read; markup would leave its place.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import TypeVar
from unicodedata import combining, east_asian_width

from jaxgate.model.words import plural

_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of writing
    "\u2028\u2029"  # ends of lines to some
    "\u00ad\u200b-\u200d\u2060-\u2064\ufeff"  # nothing at all
    "\ud800-\udfff]"  # bytes of a name that is no text, which cannot be printed
)


def printable(text: str) -> str:
    """Text with every character that acts on a terminal, or cannot be encoded, as its number; lines stay lines."""
    return _ACTS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable_line(text: str) -> str:
    """Text as ``printable`` gives it, on one line: a name cannot pretend to be a line of its own."""
    return printable(text).replace("\n", " ")


def shell_word(text: str) -> str:
    """One word of a command that somebody may copy: nothing in it ends the quotes."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def fold(title: str, body: str) -> str:
    """A block that opens with a click. The title is HTML, made with ``inline_code`` where it holds names."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def fenced(text: str, language: str = "text") -> str:
    """A block whose fence is longer than any within it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def plain(text: str) -> str:
    """Words on one line: nothing of them is markup, a mention or a link.

    GitHub looks for mentions and numbers of issues in what a page shows: of ``@`` and ``#`` it shows the wide twins.
    """
    wide = one_line(text).translate({ord("@"): "\uff20", ord("#"): "\uff03"})
    return re.sub(r"([\\`*_{}\[\]()+!|~:<>&]|(?<=www)\.)", lambda match: f"&#{ord(match[1])};", wide)


def code(text: str) -> str:
    """A name in a cell or a sentence, as it is; no bar or backtick of it is the table's."""
    shown = one_line(text).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`" if shown else ""


def inline_code(text: str) -> str:
    """A name within HTML."""
    return f"<code>{html.escape(one_line(text))}</code>"


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


Outcome = TypeVar("Outcome", bound=StrEnum)


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), texts: Sequence[str] = ()) -> list[str]:
    """One line for each row, nothing wrapped or cut.

    ``right`` are the places of columns aligned to the right. ``texts`` follow the rows; without them no line ends in
    spaces.
    """
    shown = [[printable_line(cell) for cell in row] for row in rows]
    widths = [max(map(_columns, column)) for column in zip(*shown, strict=True)]
    lines = []
    for row in shown:
        room = [" " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [
            gap + cell if place in right else cell + gap
            for place, (cell, gap) in enumerate(zip(row, room, strict=True))
        ]
        lines.append("".join(f"{cell}  " for cell in cells))
    if not texts:
        return [line.rstrip() for line in lines]
    return [f"{line}{printable(text)}" for line, text in zip(lines, texts, strict=True)]


def json_text(content: object) -> str:
    """A file for machines: its texts do nothing in a terminal."""
    return printable(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"


def _columns(text: str) -> int:
    """The columns that a text takes in a terminal: two for a wide character, none for one that joins the last."""
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def headed(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), texts: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Rows as ``aligned`` gives them, the first cell of each line apart and padded: it is a word to colour."""
    width = max((len(row[0]) for row in rows), default=0)
    return [(line[:width], line[width:]) for line in aligned(rows, right=right, texts=texts)]


def count_outcomes(found: Collection[Outcome], kinds: type[Outcome]) -> str:
    """How many cases have each outcome, in the order of the kinds: ``3 cases: 2 MEASURED, 1 FAILED``."""
    counts = Counter(found)
    return f"{plural(len(found), 'case')}: " + ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind])
