"""Times of a case on quiet, exclusive hardware: one number for each recording session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from jaxgate.model.baseline import Baseline, Provenance
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import Fingerprints
from jaxgate.model.numbers import Contract, Strict

TIMES_SCHEMA = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSession(Strict):
    """What one fresh process measured of a case."""

    provenance: Provenance  # the checkout and the day
    run_ns: float  # median time of one call
    contract: Contract  # what the time of a call means
    fingerprints: Fingerprints  # of the accepted baseline that it was recorded for; its own program was the same
    environment: Mapping[str, str]  # where it ran
    machine: str  # what the look at the machine saw, for people

    def __post_init__(self) -> None:
        """Refuse what is no time: its logarithm decides."""
        if not 0 < self.run_ns < inf:
            raise ValueError("run_ns must be a positive number of nanoseconds")

    def is_of(self, baseline: Baseline) -> bool:
        """Whether it is of this accepted baseline: one that was accepted since is another program, or elsewhere."""
        return (
            self.fingerprints == baseline.fingerprints
            and self.fingerprints.options is not None  # unknown options may be any
            and self.environment == baseline.environment
            and self.contract == baseline.contract
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTimes(Strict):
    """The content of one file under ``baselines/<hardware>/times/<family>/``; sessions in the order taken."""

    schema: int
    case: str
    hardware: HardwareKey
    sessions: tuple[TimedSession, ...]
