"""What a calibration saw: identical programs, and slow-downs planted on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import Any, ClassVar

from jaxgate.model.machines.hardware import HardwareKey
from jaxgate.model.measured.numbers import STRICT

CALIBRATION_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One size of slow-down, planted twice: by scaling the times, and as extra work on the device.

    Attributes:
        share: Relative slow-down that was wanted.
        scaled: Share of the duels with scaled times that called it SLOWER.
        ratios: Median ratio of each duel with extra work, as it was measured.
        slower: How many of those duels called it SLOWER.
        why_not: Why no extra work was planted, where none was.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    share: float
    scaled: float
    ratios: tuple[float, ...]
    slower: int
    why_not: str

    @property
    def really(self) -> float | None:
        """The relative slow-down that was measured: median over the duels; ``None`` if there were none."""
        return median(self.ratios) - 1 if self.ratios else None

    @property
    def seen(self) -> float | None:
        """Share of the duels with extra work that called it SLOWER; ``None`` if there were none."""
        return self.slower / len(self.ratios) if self.ratios else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCalibration:
    """The outcome of many duels of one program with itself.

    Attributes:
        case: Name of the case.
        hardware: Where it ran.
        executables: How many pairs of executables the duels of identical programs used.
        alarms: How many of these duels called one of them slower (false alarms at stage one).
        confirmed: How many of those came again in fresh processes.
        undecided: How many were UNDECIDED.
        margin: Median margin that was in force.
        sees: Median of the smallest slow-down that would have been seen.
        floor: The most that the median ratio of one of these duels was off, either way, as a share.
        ratios: Median ratio of each of these duels.
        plants: What was planted.
        call_ns: Median time of a call.
        cost_s: Mean time of a duel, looks allowed.
        took_s: What calibrating the case took.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    case: str
    hardware: HardwareKey
    executables: int
    alarms: int
    confirmed: int
    undecided: int
    margin: float
    sees: float
    floor: float
    ratios: tuple[float, ...]
    plants: tuple[Plant, ...]
    call_ns: float
    cost_s: float
    took_s: float

    @property
    def duels(self) -> int:
        """How many duels of identical programs were run."""
        return len(self.ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A whole calibration, as it is written for people and programs.

    Attributes:
        date: Day it was made, UTC.
        jaxgate: Version of this package.
        environments: Slug of each hardware to the versions and settings that it was measured under.
        cases: The cases that came to an end.
        failed: The cases that did not, with the reason.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    schema: int
    date: str
    jaxgate: str
    environments: Mapping[str, Mapping[str, str]]
    cases: tuple[CaseCalibration, ...]
    failed: Mapping[str, str]


FLOORS_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """What identical programs of one case looked like.

    Attributes:
        floor: The most that the median ratio of a duel was off, either way, as a share.
        duels: Of how many.
        date: Day it was measured, UTC.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    floor: float
    duels: int
    date: str

    def __post_init__(self) -> None:
        """Refuse a floor that no duel can have given."""
        if not isfinite(self.floor) or self.floor < 0 or self.duels < 1:
            raise ValueError("a noise floor needs a share of 0 or more, out of 1 duel or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloors:
    """The floors of one machine, which hold for its hardware and environment only."""

    __pydantic_config__: ClassVar[Any] = STRICT

    schema: int
    hardware: HardwareKey
    environment: Mapping[str, str]
    cases: Mapping[str, NoiseFloor]
