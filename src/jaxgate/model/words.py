"""Numbers of things, lists of them and long texts, in few words."""

from __future__ import annotations

from collections.abc import Sequence

MAX_CHANGES_NAMED = 2
"""Differences of environments that one line names; a red case names more."""


def plural(number: int, one: str, many: str = "", *, spec: str = "") -> str:
    """``1 case``, ``3 cases``; ``many`` where more than an "s" differs, ``spec`` ``,`` to separate thousands."""
    return f"{number:{spec}} {one if number == 1 else many or f'{one}s'}"


def shortlist(items: Sequence[str], most: int, *, phrases: bool = False) -> str:
    """Some items by name, the rest by number: ``a, b and 3 more``; phrases, which may have commas: ``a; b; and 3 more``."""
    more = f"{';' * phrases} and {len(items) - most} more" if len(items) > most else ""
    return f"{('; ' if phrases else ', ').join(items[:most])}{more}"


def detectable(sees: float) -> str:
    """What a duel would have shown, as each verdict about time states it: ``detectable slow-down 7.6%``."""
    return f"detectable slow-down {sees:.1%}"


def in_brackets(differences: Sequence[str]) -> str:
    """Some differences of environments, JAX's settings first: they change with a line of code that nobody thinks of."""
    ordered = sorted(differences, key=lambda line: not line.startswith("jax_"))
    return f" [{shortlist(ordered, MAX_CHANGES_NAMED)}]" if differences else ""


def cut(line: str, width: int | None) -> str:
    """A line in so many columns, an ellipsis after its last word or letter where it is longer; ``None`` for any number."""
    if width is None or len(line) <= width:
        return line
    return line[: width - 1].rstrip(" ·") + "…" if width > 0 else ""
