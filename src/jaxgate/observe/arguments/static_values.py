"""What differs between two static values, as text: of long ones the places where they do, and not both whole."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from jaxgate.model import cut, shortlist

SHORT = 60
"""Characters of a value that is shown whole."""
MAX_PLACES = 2
"""Places that are shown of one value: a message has up to three values."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_WORD = re.compile(r"[\w.+-]+|\s+|.", re.DOTALL)
_MAX_WORDS = 4_000
"""Beyond that only what stands before the first difference and after the last one is left out: comparing takes long."""


def static_change(old: str, new: str) -> str:
    """``static 1.0 → static 0.5``; addresses, which are others in each process, do not count.

    Args:
        old: ``repr`` of the value before.
        new: ``repr`` of the value now.
    """
    before, after = (_ADDRESS.sub("", text) for text in (old, new))
    if before == after:
        return f"static {cut(after, SHORT)} is a new object"
    if max(len(before), len(after)) <= SHORT:
        return f"static {before} → static {after}"
    changes = _changes(_WORD.findall(before), _WORD.findall(after))
    shown = [
        f"static {cut(gone, SHORT) or 'nothing'} → static {cut(come, SHORT) or 'nothing'}" for gone, come in changes
    ]
    return shortlist(shown, MAX_PLACES, phrases=True)


def _changes(before: list[str], after: list[str]) -> list[tuple[str, str]]:
    if max(len(before), len(after)) > _MAX_WORDS:
        begin = _alike(before, after)
        end = _alike(before[begin:][::-1], after[begin:][::-1])
        return [("".join(before[begin : len(before) - end]), "".join(after[begin : len(after) - end]))]
    found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        ("".join(before[start:stop]), "".join(after[first:last]))
        for kind, start, stop, first, last in found
        if kind != "equal"
    ]


def _alike(before: list[str], after: list[str]) -> int:
    """How many words two lists begin with alike."""
    return next(
        (place for place, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
