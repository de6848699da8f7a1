"""The words of a verdict."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The outcome of a check or of a case; the one that decides a case last."""

    SAME = "SAME"
    FASTER = "FASTER"
    IMPROVED = "IMPROVED"
    EXPECTED = "EXPECTED"
    UNDECIDED = "UNDECIDED"
    WAIVED = "WAIVED"
    NO_BASELINE = "NO_BASELINE"
    STALE_BASELINE = "STALE_BASELINE"
    SLOWER = "SLOWER"
    REGRESSED = "REGRESSED"
    INVALID = "INVALID"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
