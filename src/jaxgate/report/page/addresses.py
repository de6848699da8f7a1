"""Where links of a page lead: to fragments of it and to files beside it, never to an address that a name made up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

_GAPS = re.compile(r"\s+")
_UP = {"", ".", ".."}


def fragments(names: Iterable[tuple[str, str]]) -> list[str]:
    """The ``id`` of each row of a table: a name, with what tells it from others of that name, without gaps; no two are alike."""
    taken: set[str] = set()
    found = []
    for name, apart in names:
        plain = _GAPS.sub("-", name) or "unnamed"
        options = [plain, f"{plain}@{_GAPS.sub('-', apart)}"]
        key = next((option for option in options if option not in taken), "")
        number = 2
        while not key:
            numbered = f"{options[-1]}~{number}"
            key, number = ("" if numbered in taken else numbered), number + 1
        taken.add(key)
        found.append(key)
    return found


def to_fragment(key: str) -> str:
    """A link to an ``id`` of the same page."""
    return f"#{quote(key, safe='/[]=,:@~')}"


def to_file(folder: str, *parts: str) -> str:
    """A link to a file or a folder below the page's own, or below a folder of ours.

    Args:
        folder: A path from the page, of ours: ``""``, ``"../perf-artifacts"``.
        parts: Names that came with the results.

    Returns:
        The link; empty if a name would lead elsewhere.
    """
    names = [name for part in parts for name in part.split("/")]
    if any(name in _UP or "\\" in name or "\0" in name for name in names):
        return ""
    before = [quote(name, safe="") if name != ".." else name for name in folder.split("/") if name not in ("", ".")]
    return "/".join([".", *before, *(quote(name, safe="") for name in names)])
