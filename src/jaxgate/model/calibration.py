"""What a calibration saw of one case: identical programs, and slow-downs planted on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCalibration:
    """The outcome of many duels of one program with itself.

    Attributes:
        case: Name of the case.
        duels: How many duels of identical programs were run.
        alarms: How many called one of them slower (false alarms at stage one).
        confirmed: How many of those came again in fresh processes.
        undecided: How many were UNDECIDED.
        margin: Median margin that was in force.
        sees: Median of the smallest slow-down that would have been seen.
        seen: Planted slow-down to the share of duels that called it SLOWER.
        call_ns: Median time of a call.
        cost_s: Mean time of a duel, looks allowed.
    """

    case: str
    duels: int
    alarms: int
    confirmed: int
    undecided: int
    margin: float
    sees: float
    seen: Mapping[float, float]
    call_ns: float
    cost_s: float
