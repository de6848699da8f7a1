"""How far identical programs of a case are apart on a machine, as a calibration found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from jaxgate.model.machine import HardwareKey
from jaxgate.model.numbers import Strict

FLOORS_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor(Strict):
    """What identical programs of one case looked like."""

    floor: float  # the most that the median ratio of a duel was off, either way, as a share
    duels: int  # of how many
    date: str  # day it was measured, UTC

    def __post_init__(self) -> None:
        """Refuse a floor that no duel can have given."""
        if not isfinite(self.floor) or self.floor < 0 or self.duels < 1:
            raise ValueError("a noise floor needs a share of 0 or more, out of 1 duel or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloors(Strict):
    """The floors of one machine, which hold for its hardware and environment only."""

    schema: int
    hardware: HardwareKey
    environment: Mapping[str, str]
    cases: Mapping[str, NoiseFloor]
