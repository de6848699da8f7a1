"""What a duel decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from jaxgate.model.numbers import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a duel decides after some number of pairs.

    Attributes:
        status: SLOWER, FASTER, SAME, or UNDECIDED.
        ratio: Median of now / baseline.
        low: Lower bound of the ratio.
        high: Upper bound of the ratio.
        pairs: Pairs looked at.
        margin: Relative slow-down that does not count.
        sees: Smallest relative slow-down that would have been seen 9 times in 10.
        threshold: Slow-down that SAME must have been able to see.
        now_ns: Median time of one call of today's program.
        baseline_ns: The same of the other.
        reason: The decision in words.
        agrees: Whether both programs gave the same numbers; ``None`` where these were too large to be compared.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    status: Status
    ratio: float
    low: float
    high: float
    pairs: int
    margin: float
    sees: float
    threshold: float
    now_ns: float
    baseline_ns: float
    reason: str
    agrees: bool | None = True


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
