"""The comment of a pull request as a text: its mark, and as much of a page as fits.

Imports the standard library alone: ``ci/post_comment.py`` runs this file where nothing is installed.
"""

from __future__ import annotations

MARK = "<!-- jaxgate -->"
LONGEST = 65_000
"""Characters that GitHub takes are 65,536."""


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
