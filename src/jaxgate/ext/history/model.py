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
    """One case of one run."""

    run: str  # names the run
    moment: str  # when it ended, UTC, `2026-11-25T02:30:00+00:00`; points are ordered by it
    case: str  # `family/sentence`
    folder: str  # hardware and release line of jax, `cpu-amd-epyc-1-jax-0.12`; facts of two folders are not compared
    commit: str | None = None  # what was checked out; `None` if nobody knows
    status: str = ""  # the verdict, `SAME`; empty where there is none, as in what was imported
    fails: bool = False  # whether the test failed
    recorded: str = ""  # `created` or `refreshed` by this run; empty if it was judged
    # the options that chose something else to compare with than the stored baselines; its ratio is no step from these
    elsewhere: str = ""
    program: str = ""  # structure of the program; empty if unknown
    # what it was held against; of a `refreshed` case the baseline that was replaced. `None` if there was none.
    baseline: BaselineName | None = None
    time_status: str = ""  # what was said of its time: SAME without a ratio means that the program did not change
    ratio: float | None = None  # time of a call as a multiple of the baseline program's, by a duel; `None` without one
    low: float | None = None  # lower bound of the ratio
    high: float | None = None  # upper bound
    # facts, phases and `run_ns` by name, as in `Figures.now`
    figures: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)  # versions, flags, driver
    source: Source = "jaxgate"  # who measured it


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRun:
    """One run."""

    run: str  # names it; a run is remembered once
    moment: str  # when it ended, UTC
    commit: str | None = None  # what was checked out; `None` if nobody knows
    dirty: bool = False  # whether tracked files differed from it
    jaxgate: str = ""  # version that ran; empty for another tool's run
    elsewhere: str = ""  # the options that chose something else to compare with than the stored baselines
    green: bool | None = None  # whether it was; `None` if nobody knows
    gate_exit: int | None = None  # what a gate ends with; `None` if nobody knows
    source: Source = "jaxgate"  # who measured
    points: tuple[HistoryPoint, ...] = ()  # its cases; empty where only the runs were asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCase:
    """A case that the history knows, on one hardware and release line of jax."""

    case: str  # `family/sentence`
    folder: str  # hardware and release line; empty where nobody knows
    runs: int  # how many have it
    moment: str  # of the newest one
    status: str  # its verdict then; empty where there was none
