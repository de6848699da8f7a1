"""The history of runs: what each said of its cases, oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from jaxgate.model.verdict import BaselineName

HISTORY_OFF = "none"
"""Stands for no place: no run is remembered."""
HISTORY_PLACE = ".jaxgate/history.sqlite"
"""Where runs are remembered by default, relative to the root folder of the tests."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRun:
    """One run.

    Attributes:
        run: Names it; a run is remembered once.
        moment: When it ended, UTC.
        commit: What was checked out; ``None`` if nobody knows.
        dirty: Whether tracked files differed from it.
        jaxgate: Version that ran; empty for another tool's run.
        elsewhere: The options that chose something else to compare with than the stored baselines.
        green: Whether it was; ``None`` if nobody knows.
        gate_exit: What a gate ends with; ``None`` if nobody knows.
        source: Who measured.
        points: Its cases; empty where only the runs were asked for.
    """

    run: str
    moment: str
    commit: str | None = None
    dirty: bool = False
    jaxgate: str = ""
    elsewhere: str = ""
    green: bool | None = None
    gate_exit: int | None = None
    source: Source = "jaxgate"
    points: tuple[HistoryPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCase:
    """A case that the history knows, on one hardware and release line of jax.

    Attributes:
        case: ``family/sentence``.
        folder: Hardware and release line; empty where nobody knows.
        runs: How many have it.
        moment: Of the newest one.
        status: Its verdict then; empty where there was none.
    """

    case: str
    folder: str
    runs: int
    moment: str
    status: str
