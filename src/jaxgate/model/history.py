"""The history of a case: what each run said of it, oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from jaxgate.model.figures import BaselineName

Source = Literal["jaxgate", "pytest-benchmark"]
"""Who measured it; of what pytest-benchmark saved, only times are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """One case of one run.

    Attributes:
        run: Names the run.
        moment: When it ended, UTC, ``2026-11-25T02:30:00+00:00``; points are ordered by it.
        commit: What was checked out; ``None`` if nobody knows.
        case: ``family/sentence``.
        folder: Hardware and release line of jax, ``cpu-amd-epyc-1-jax-0.12``; facts of two folders are not compared.
        status: The verdict, ``SAME``; empty where there is none, as in what was imported.
        fails: Whether the test failed.
        recorded: ``created`` or ``refreshed`` by this run; empty if it was judged.
        elsewhere: The options that chose something else to compare with than the stored baselines; its ratio is
            no step from these.
        program: Structure of the program; empty if unknown.
        baseline: What it was held against; of a ``refreshed`` case the baseline that was replaced. ``None`` if there was none.
        time_status: What was said of its time: SAME without a ratio means that the program did not change.
        ratio: Time of a call as a multiple of the baseline program's, by a duel; ``None`` without one.
        low: Lower bound of the ratio.
        high: Upper bound.
        figures: Facts, phases and ``run_ns`` by name, as in ``Figures.now``.
        environment: Versions, flags, driver.
        source: Who measured it.
    """

    run: str
    moment: str
    case: str
    folder: str
    commit: str | None = None
    status: str = ""
    fails: bool = False
    recorded: str = ""
    elsewhere: str = ""
    program: str = ""
    baseline: BaselineName | None = None
    time_status: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    source: Source = "jaxgate"
