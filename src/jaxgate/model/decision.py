"""The statuses of verdicts, and what a duel decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jaxgate.model.numbers import Strict


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Strict):
    """What a duel decides after some number of pairs."""

    status: Status  # SLOWER, FASTER, SAME, or UNDECIDED
    ratio: float  # median of now / baseline
    low: float  # lower bound of the ratio
    high: float  # upper bound of the ratio
    pairs: int  # pairs looked at
    margin: float  # relative slow-down that does not count
    sees: float  # smallest relative slow-down that would have been seen 9 times in 10
    threshold: float  # slow-down that SAME must have been able to see
    now_ns: float  # median time of one call of today's program
    baseline_ns: float  # median time of one call of the other program
    reason: str  # the decision in words
    # whether both programs gave the same numbers; `None` where these were too large to be compared
    agrees: bool | None = True


class Status(StrEnum):
    """The outcome of a check or of a case, the mildest first: the severest finding decides a case (``judge/order.py``)."""

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


UNMEASURED = frozenset({Status.INVALID, Status.RESOURCE_EXHAUSTED})
ALWAYS_FAIL = UNMEASURED | {Status.REGRESSED, Status.SLOWER}
