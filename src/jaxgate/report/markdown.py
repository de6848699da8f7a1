"""Markdown that nothing within it can leave: names of tests come from whoever opened the pull request."""

from __future__ import annotations

import html
import re


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
