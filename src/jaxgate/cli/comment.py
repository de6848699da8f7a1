"""``jaxgate comment``: the text of a pull request's one comment, which each run replaces.

The first line is a mark by which the last one is found. There is always a text: where no run left a result, it says
that in red, so that an old green one does not stay.
"""

from __future__ import annotations

from pathlib import Path

from jaxgate.cli.console import tell, write
from jaxgate.keep.files import read_text
from jaxgate.keep.git import COMMIT
from jaxgate.keep.results import read_run_file
from jaxgate.report.comment import MARK, shortened, unheard


def comment(folder: Path, commit: str = "") -> int:
    """Print the comment of the results in a folder; only those of ``commit``, unless it is empty. The exit code is 0."""
    text = f"{MARK}\n{shortened(unheard(_text(folder, commit)))}\n"
    tell(text=text)
    write(text)
    return 0


def _text(folder: Path, commit: str) -> str:
    try:
        page = read_text(folder / "summary.md")
        found = read_run_file(folder / "results.json")["commit"]
    except (OSError, ValueError, KeyError, TypeError):
        return "## ❌ jaxgate: no result\n\nThe gate ended without judging; the log of its job says why."
    if commit and found != commit:
        shown = f"`{found[:10]}`" if isinstance(found, str) and COMMIT.fullmatch(found) else "no commit"
        return f"## ❌ jaxgate: no result of this commit\n\nThe results are of {shown}, expected `{commit[:10]}`."
    return page.rstrip()
