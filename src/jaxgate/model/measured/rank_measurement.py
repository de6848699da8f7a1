"""What one process of several measured of a case, fit to be sent: numbers and texts, no arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from jaxgate.model.machines.hardware import HardwareKey
from jaxgate.model.measured.measurement import Fingerprints, Measured, Measurement
from jaxgate.model.measured.numbers import Facts, Phases, Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMeasurement(Measured):
    """One rank's part in the measurement of a case.

    Attributes:
        name: The rank, for people.
        avals: dtype and shape of each argument and result.
        retraces: Who traced or compiled again there.
        lost: Donated arrays that were not reused there.
        unknown: Facts that could not be had there, with the reason.
        processes: How many processes the devices belong to.
    """

    name: str
    avals: tuple[str, ...]
    retraces: tuple[str, ...]
    lost: tuple[str, ...]
    unknown: Mapping[str, str]
    processes: int

    @classmethod
    def of(cls, measurement: Measurement, name: str) -> RankMeasurement:
        """What a rank measured."""
        return cls(
            name=name,
            avals=tuple(leaf.aval for leaf in (*measurement.signature, *measurement.results)),
            retraces=measurement.culprits.retraces,
            lost=measurement.culprits.lost,
            unknown=measurement.unknown,
            processes=measurement.processes,
            **{field.name: getattr(measurement, field.name) for field in fields(Measured)},
        )

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RankMeasurement:
        """Back from JSON.

        Raises:
            TypeError: If it is something else.
            KeyError: Likewise.
            ValueError: Likewise.
        """
        samples = plain["samples"]
        return cls(
            **{
                **plain,
                "hardware": HardwareKey(**plain["hardware"]),
                "fingerprints": Fingerprints(**plain["fingerprints"]),
                "facts": Facts(**plain["facts"]),
                "phases": Phases(**plain["phases"]),
                "samples": samples and Samples(**{**samples, "bursts_ns": tuple(samples["bursts_ns"])}),
                **{name: tuple(plain[name]) for name in ("avals", "retraces", "lost")},
            }
        )
