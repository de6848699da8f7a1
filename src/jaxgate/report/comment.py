"""The comment of a pull request as a text: its mark, as much of a page as fits, and texts of strangers that only show themselves.

Imports the standard library alone: ``ci/post_comment.py`` runs this file where nothing is installed.
"""

from __future__ import annotations

import html
import re
from itertools import zip_longest

MARK = "<!-- jaxgate -->"
LONGEST = 65_000
"""Characters of a comment: GitHub takes 65,536."""
_CUT = "\n\n… cut here: the whole page is `summary.md` in the artifacts of the run."
_ACTS = re.compile(r"^[^\S\n]*\S|[^\w\s]|_", re.MULTILINE)
"""What may begin a mention, a command, a link or markup: all but letters and digits, and whatever begins a line."""
_MARKUP = re.compile(r"</?(?:details|summary|code)>|^#+ |^`{3,}\w*\n", re.MULTILINE)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_MOST_COLUMNS, _WIDEST = 8, 60
"""Most columns of a table, and the width of each; a longer cell pushes the rest of its row."""


def inert(text: str, longest: int = LONGEST) -> str:
    """A block of a comment, at most ``longest`` characters, in which a text of strangers is read and does nothing else.

    GitHub looks for mentions and references in no ``<pre>``. Bots read a comment as it was sent, quoted or not: of the text
    only letters and digits are sent as they are, and none of them begins a line.
    """
    shown, room = [], longest - 2 * len(_CUT) - len("<pre></pre>")
    for line in text.split("\n"):
        visible = "".join(c if c.isprintable() or c == "\t" else f"\\u{ord(c):04x}" for c in line)
        shown.append(_ACTS.sub(lambda match: f"{match[0][:-1]}&#{ord(match[0][-1])};", visible))
        room -= len(shown[-1]) + 1
        if room < 0:
            shown[-1] = _CUT.strip()
            break
    body = "\n".join(shown)
    return f"<pre>{body}</pre>"


def unheard(page: str) -> str:
    """A page that calls nobody, person or bot: the wide twin of ``@`` before a word, of ``/`` where a line begins with it."""
    return re.sub(r"^([ \t]*)/(?=\w)", "\\1\uff0f", re.sub(r"@(?=\w)", "\uff20", page), flags=re.MULTILINE)


def unmarked(page: str) -> str:
    """What a page of ours says, without its Markdown: the cells of a table in columns."""
    found = _TABLE.sub(lambda match: _columns(match[0]), f"{page}\n")
    return re.sub(r"\n{3,}", "\n\n", html.unescape(_MARKUP.sub("", found))).strip("\n")


def _columns(table: str) -> str:
    lines = [line.replace("`", "") for line in table.splitlines() if not set(line) <= set("|-: ")]
    split = [re.split(r"(?<!\\)\|", line, maxsplit=_MOST_COLUMNS)[1:] for line in lines]
    rows = [[html.unescape(cell.replace("\\|", "|")).strip() for cell in row] for row in split]
    widths = [min(max(map(len, cells)), _WIDEST) for cells in zip_longest(*rows, fillvalue="")]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def shortened(page: str, longest: int = LONGEST) -> str:
    """As much of a page as fits, cut between two blocks, never within a fold."""
    if len(page) <= longest:
        return page
    room, kept = longest - len(_CUT), ""
    for block in _blocks(page):
        if len(kept) + len(block) > room:
            break
        kept += block
    return kept.rstrip() + _CUT


def _blocks(page: str) -> list[str]:
    """A page in pieces that stand alone: a fold is one, however many empty lines it has."""
    found: list[str] = []
    inside = False
    for piece in page.split("\n\n"):
        if inside:
            found[-1] += f"{piece}\n\n"
        else:
            found.append(f"{piece}\n\n")
        inside = (inside or piece.startswith("<details>")) and not piece.endswith("</details>")
    return found
