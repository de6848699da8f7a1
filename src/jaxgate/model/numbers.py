"""What is measured: facts (deterministic), phases (outside the steady state) and samples (time).

``None`` always means "this backend does not tell", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}
"""How stored data is read back: an unknown, missing or mistyped key is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The deterministic numbers of one program and of a few calls of it.

    The last word of each name is its unit: bytes, flops, or a count.
    ``judge.policy`` says for each one which way is worse and by how much it may move.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    # What the calls showed (subject only: a reference is not threaded).
    traces: int | None = None
    compiles: int | None = None
    sampled_traces: int | None = None
    sampled_compiles: int | None = None
    # What the program asks for, before any backend has seen it.
    donated_bytes: int | None = None
    constant_bytes: int | None = None
    host_callbacks: int | None = None
    matmul_flops: int | None = None
    stablehlo_ops: int | None = None
    # What the backend's compiler made of it.
    aliased_bytes: int | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None
    temp_bytes: int | None = None
    xla_flops: int | None = None
    xla_bytes: int | None = None

    @property
    def footprint_bytes(self) -> int | None:
        """Device memory that one call needs: arguments, outputs and temporaries, aliased bytes once."""
        parts = (self.argument_bytes, self.output_bytes, self.temp_bytes, self.aliased_bytes)
        if None in parts:
            return None
        argument, output, temp, aliased = parts
        return argument + output + temp - aliased  # type: ignore[operator]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Wall time outside the steady state, each measured once, in nanoseconds."""

    __pydantic_config__: ClassVar[Any] = STRICT

    trace_ns: int | None = None
    lower_ns: int | None = None
    compile_ns: int | None = None
    first_call_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Raw times of bursts of blocked calls.

    Attributes:
        bursts_ns: Wall time of each burst, in the order taken.
        calls_per_burst: Calls in one burst; the whole output tree of the last one is waited for.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    bursts_ns: tuple[int, ...]
    calls_per_burst: int

    def __post_init__(self) -> None:
        """Refuse samples that have no time of a call."""
        if not self.bursts_ns or min(self.bursts_ns) < 0 or self.calls_per_burst < 1:
            raise ValueError("samples need at least one burst, none negative, of at least one call")

    @property
    def run_ns(self) -> float:
        """Median time of one call."""
        return median(self.bursts_ns) / self.calls_per_burst
