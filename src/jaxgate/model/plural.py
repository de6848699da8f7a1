"""Numbers of things, and lists of them, in words."""

from __future__ import annotations

from collections.abc import Sequence


def plural(number: int, one: str, many: str = "", *, spec: str = "") -> str:
    """``1 case``, ``3 cases``.

    Args:
        number: How many.
        one: The words after a 1.
        many: The words after any other number, where more than an "s" at the end differs: ``cases are``.
        spec: How the number is formatted: ``,`` separates thousands.
    """
    return f"{number:{spec}} {one if number == 1 else many or f'{one}s'}"


def shortlist(items: Sequence[str], most: int) -> str:
    """Some items by name, the rest by number: ``a, b and 3 more``."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return f"{', '.join(items[:most])}{more}"
