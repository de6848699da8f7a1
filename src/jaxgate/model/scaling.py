"""Scaling: the rates of cases that do the same on several numbers of devices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One number of devices.

    Attributes:
        devices: How many worked.
        per_second: What they got done together, in the unit of the series.
        efficiency: The rate of one of them, as a share of that on the fewest devices of the series.
    """

    devices: int
    per_second: float
    efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The same work on several numbers of devices, or so much for each of them.

    Attributes:
        series: Name that its cases share.
        unit: Of the rates.
        points: By the number of devices, at least two.
    """

    series: str
    unit: str
    points: tuple[Point, ...]
