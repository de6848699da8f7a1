"""A request that cannot be carried out."""

from __future__ import annotations


class UsageError(Exception):
    """What the user asked for cannot be done; the text says what was expected, what was found and what to type."""
