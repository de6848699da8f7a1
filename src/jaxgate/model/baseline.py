"""A baseline: what a case was when somebody accepted it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jaxgate.model.measurement import Fingerprints, HardwareKey, Leaf, Measurement
from jaxgate.model.numbers import STRICT, Facts, Phases, Samples
from jaxgate.model.program import ProgramRecord

SCHEMA = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Who can say where these numbers come from.

    Attributes:
        commit: The checkout's commit at recording time (parent of the one that adds the file), if any.
        dirty: Whether tracked files differed from it.
        date: UTC date, ``YYYY-MM-DD``.
        jaxgate: Version of the recorder.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    commit: str | None
    dirty: bool
    date: str
    jaxgate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """One accepted case: the content of one file under ``baselines/<hardware>/<family>/``.

    Attributes:
        case: ``family/sentence``.
        test: pytest node id that recorded it; a baseline whose test is gone is an orphan.
        results: The arrays that a call returns.
        operations, matmuls, collectives, widened, launched: As in the measurement; they explain a difference and
            never gate.
        program: What is stored of the program itself, under ``programs/<fingerprint>``.
        host: Whether the subject is plain Python around device programs.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    schema: int
    case: str
    test: str
    provenance: Provenance
    hardware: HardwareKey
    environment: Mapping[str, str]
    fingerprints: Fingerprints
    signature: tuple[Leaf, ...]
    facts: Facts
    phases: Phases
    samples: Samples
    results: tuple[Leaf, ...]
    operations: Mapping[str, int]
    matmuls: Mapping[str, int]
    collectives: Mapping[str, int]
    widened: Mapping[str, int]
    launched: Mapping[str, int]
    program: ProgramRecord
    host: bool

    @classmethod
    def of(
        cls, measurement: Measurement, *, case: str, test: str, provenance: Provenance, program: ProgramRecord
    ) -> Baseline:
        """Accept a measurement as it is.

        Raises:
            ValueError: If it carries no samples.
        """
        if measurement.samples is None:
            raise ValueError(f"{case} was not sampled; a baseline needs samples")
        return cls(
            schema=SCHEMA,
            case=case,
            test=test,
            provenance=provenance,
            hardware=measurement.hardware,
            environment=measurement.environment,
            fingerprints=measurement.fingerprints,
            signature=measurement.signature,
            facts=measurement.facts,
            phases=measurement.phases,
            samples=measurement.samples,
            results=measurement.results,
            operations=measurement.operations,
            matmuls=measurement.matmuls,
            collectives=measurement.collectives,
            widened=measurement.widened,
            launched=measurement.launched,
            program=program,
            host=measurement.host,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A baseline as found on disk.

    Attributes:
        baseline: What it says.
        path: Its file.
        borrowed: Recorded on other hardware of the same platform.
    """

    baseline: Baseline
    path: Path
    borrowed: bool
