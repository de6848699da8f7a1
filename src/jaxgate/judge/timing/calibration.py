"""The margin that a calibration gives a case: where it holds, and how wide it is. Pure.

It can only widen a margin, up to the cap of all. A high floor makes nothing green: a case whose SAME could not have
seen a slow-down of 10 % is UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jaxgate.judge.difference import environment_differences
from jaxgate.judge.timing.duel import MAX_MARGIN, MIN_MARGIN
from jaxgate.model.calibration import NoiseFloor, NoiseFloors
from jaxgate.model.decision import Decision
from jaxgate.model.machine import HardwareKey
from jaxgate.model.words import plural, shortlist

MAX_DIFFERENCES = 3


def why_not_applied(floors: NoiseFloors, hardware: HardwareKey, environment: Mapping[str, str]) -> str:
    """Say why a calibration does not hold here; empty if it does."""
    if floors.hardware != hardware:
        return f"expected hardware `{hardware.slug}`, found `{floors.hardware.slug}`"
    differences = environment_differences(environment, floors.environment)
    if not differences:
        return ""
    return f"it was made in another environment ({shortlist(differences, MAX_DIFFERENCES)})"


def own_margin(floor: NoiseFloor | None) -> float | None:
    """The margin of a case; ``None`` where no calibration is known. Never below that of every case."""
    return None if floor is None else max(MIN_MARGIN, floor.floor)


def name_margin(decision: Decision, floor: NoiseFloor | None) -> Decision:
    """Say in the reason that the margin is the calibration's, where it is."""
    own = own_margin(floor)
    if floor is None or own is None or own <= MIN_MARGIN or decision.margin != min(own, MAX_MARGIN):
        return decision
    duels = plural(floor.duels, "duel")
    how = f"the margin is from the calibration of {floor.date}: identical programs differed by up to {floor.floor:.1%} in {duels}"
    return replace(decision, reason=f"{decision.reason}; {how}")
