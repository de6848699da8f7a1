"""``jaxgate comment``: the text of a pull request's one comment, which each run replaces.

The first line is a mark by which the last one is found. There is always a text: where no run left a result, it says
that in red, so that an old green one does not stay.
"""

from __future__ import annotations

from pathlib import Path

from jaxgate.cli.console import write
from jaxgate.keep import read_json, read_text

MARK = "<!-- jaxgate -->"
LONGEST = 65_000
"""Characters that GitHub takes are 65,536."""


def comment(folder: Path, commit: str = "") -> int:
    """Print the comment.

    Args:
        folder: What the run left.
        commit: The commit that the results must be of; empty takes those of any.

    Returns:
        The exit code, 0.
    """
    write(f"{MARK}\n{shortened(_text(folder, commit))}\n")
    return 0


def _text(folder: Path, commit: str) -> str:
    try:
        page = read_text(folder / "summary.md")
        found = read_json(folder / "results.json")["commit"]
    except (OSError, ValueError, KeyError, TypeError):
        return "## ❌ jaxgate: no result\n\nThe gate ended without judging; the log of its job says why."
    if commit and found != commit:
        return f"## ❌ jaxgate: no result of this commit\n\nThe results are of `{str(found)[:10]}`, expected `{commit[:10]}`."
    return page.rstrip()


def shortened(page: str, longest: int = LONGEST) -> str:
    """As much of a page as fits, cut between two blocks, never within a fold."""
    if len(page) <= longest:
        return page
    note = "\n\n… cut here: the whole page is `summary.md` in the artifacts of the run."
    room, kept = longest - len(note), ""
    for block in _blocks(page):
        if len(kept) + len(block) > room:
            break
        kept += block
    return kept.rstrip() + note


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
