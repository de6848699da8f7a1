"""A measurement: everything that one observation of one case saw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxgate.model.numbers import STRICT, Facts, Phases, Samples


class InvalidCaseError(Exception):
    """The case cannot be judged: it raised, disagreed with its reference, gave NaN.

    Attributes:
        stage: What was being done, as a participle phrase: "tracing the subject".
        reason: What was expected and what was found.
    """

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage = stage
        self.reason = reason


class ExhaustedError(InvalidCaseError):
    """The case needs more memory than there is.

    Attributes:
        largest: The largest allocations by the compiler's or allocator's own list, one line each.
    """

    def __init__(self, stage: str, reason: str, largest: tuple[str, ...] = ()) -> None:
        super().__init__(stage, reason)
        self.largest = largest


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareKey:
    """What selects a baseline: the devices that the case uses, not those that the machine has.

    Attributes:
        platform: ``cpu``, ``gpu`` or ``tpu``.
        device_kind: As JAX names it; on CPU the processor's model.
        devices: How many the case uses.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    platform: str
    device_kind: str
    devices: int

    @property
    def slug(self) -> str:
        """Name of the folder under ``baselines/``, for example ``cpu-amd-epyc-1``."""
        kind = re.sub(r"[^a-z0-9]+", "-", self.device_kind.lower()).strip("-")
        return f"{self.platform}-{kind}-{self.devices}"

    def same_platform(self, other: HardwareKey) -> bool:
        """Whether programs compiled for the two are comparable: one platform, one number of devices."""
        return self.platform == other.platform and self.devices == other.devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """Hashes that say what changed, and so where a difference can come from.

    Attributes:
        source: The subject's source and that of the project functions it reaches; ``None`` if unknown.
        program: Structure of the StableHLO module, blind to names, locations and order of independent lines.
        options: Compiler options of the subject; ``None`` if they could not be read.
        inputs: Values of the arguments.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    source: str | None
    program: str
    options: str | None
    inputs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One array among the arguments.

    Attributes:
        path: Where it is, for people: ``state['w']``.
        aval: dtype, shape and weak type: ``float32[64,64]``.
        nbytes: Its bytes on one device, as ``Facts.argument_bytes`` and ``aliased_bytes`` count them.
        donated: Whether the subject asked to reuse its buffer.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    path: str
    aval: str
    nbytes: int
    donated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """Explanations taken from today's program and calls. They never gate and never reach a file.

    Attributes:
        retraces: One line per retrace or recompile: which argument differed and how.
        constants: The large captured constants, with size and place of use.
        operation_lines: StableHLO operation to the source line that most of its uses come from.
        matmul_lines: Matrix multiplication to the source line it comes from.
    """

    retraces: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    operation_lines: Mapping[str, str] = field(default_factory=dict)
    matmul_lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFacts:
    """What is known of the reference: facts and phases of its program. ``cached`` if compiled in an earlier run."""

    facts: Facts
    phases: Phases
    cached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Everything that one observation of one case saw; raw, so that numbers are derived when shown.

    Attributes:
        hardware: Where it ran.
        environment: What may change a program or its speed besides the code: versions, flags, driver.
        signature: The arguments, leaf by leaf.
        operations: StableHLO operations of the program, by name.
        matmuls: Matrix multiplications of one call, by operand shapes, loops counted by their length.
        samples: ``None`` when sampling was switched off.
    """

    hardware: HardwareKey
    environment: Mapping[str, str]
    fingerprints: Fingerprints
    signature: tuple[Leaf, ...]
    facts: Facts
    phases: Phases
    operations: Mapping[str, int]
    matmuls: Mapping[str, int]
    samples: Samples | None
    expected_traces: int = 1
    analytic_flops: int | None = None
    reference: ReferenceFacts | None = None
    culprits: Culprits = field(default_factory=Culprits)
