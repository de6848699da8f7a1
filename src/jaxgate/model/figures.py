"""The figures of a case: what was measured of it and what stands in its baseline, for pages and for the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

KEPT: dict[str, Any] = {"extra": "ignore", "strict": True, "allow_inf_nan": False}
"""How what a run left is read back: a later jaxgate may have added keys; no value may be of another type, and each is a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineName:
    """Which baseline a case was held against.

    Attributes:
        program: Structure of its program, as ``Fingerprints.program``.
        folder: Its folder, for example ``cpu-amd-epyc-1-jax-0.12``.
        commit: The checkout's commit when it was recorded, if any.
        date: UTC date of its recording, ``YYYY-MM-DD``.
    """

    __pydantic_config__: ClassVar[Any] = KEPT

    program: str
    folder: str
    commit: str | None
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """Times of single calls of both sides, in nanoseconds, in the order taken.

    Attributes:
        now: Today's program.
        stored: The baseline's.
        in_turn: Whether they were taken in turn in one process; if not, those of the baseline are of the day of its recording.
    """

    __pydantic_config__: ClassVar[Any] = KEPT

    now: tuple[float, ...] = ()
    stored: tuple[float, ...] = ()
    in_turn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Every number that is known of one case. They are judged elsewhere, and nothing is judged by them.

    Facts and phases stand under their names, the median call under ``run_ns``; what is not known is left out. Units are
    those of ``Facts`` and ``Phases``: bytes, FLOPs, counts, nanoseconds.

    Attributes:
        now: Today's.
        stored: The baseline's; where it comes from another machine or jax, what its program has here. Its phases and
            ``run_ns`` are always those of its recording.
        reference: The reference's, of cases that have one.
        environment: What may change a program or its speed besides the code: versions, flags, driver.
        program: Structure of today's program, as ``Fingerprints.program``.
        baseline: Which baseline it was held against; ``None`` if there is none.
        times: Single calls; empty where nothing was timed.
    """

    __pydantic_config__: ClassVar[Any] = KEPT

    now: Mapping[str, float]
    stored: Mapping[str, float] = field(default_factory=dict)
    reference: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    baseline: BaselineName | None = None
    times: CallTimes = field(default_factory=CallTimes)
