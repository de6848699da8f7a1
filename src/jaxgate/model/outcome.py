"""What a whole run came to: for machines and pages, and as it is read back from ``results.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from jaxgate.ext.profile.model import OpRow
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Status
from jaxgate.model.machine import folder_name, release_line
from jaxgate.model.verdict import Figures, Kept, Verdict

RESULTS_SCHEMA = 1
"""The schema of ``results.json``: it changes if a key goes or means something else, not for a new key."""


class GateExit(IntEnum):
    """Exit codes of ``ci/gate``."""

    FINE = 0
    REGRESSION = 1
    """A case or a baseline failed."""
    BROKEN = 2
    """The suite is broken, the machine unfit, or something was not judged."""
    MISSING = 3
    """Nothing but baselines is missing: never recorded here, of other arguments, or not committed."""

    @classmethod
    def severest(cls, ends: Iterable[GateExit]) -> GateExit:
        """The exit code of several runs together: a regression that was seen stands, whatever else went wrong."""
        return min(ends, key=(cls.REGRESSION, cls.BROKEN, cls.MISSING, cls.FINE).index)

    @property
    def sign(self) -> str:
        """How pages show it."""
        return {GateExit.FINE: "✅", GateExit.MISSING: "⚠️"}.get(self, "❌")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard(Kept):
    """Which part of a suite a run had, so that parts can be put together and none is missed."""

    number: int  # from 1
    of: int  # how many parts there are
    gates: int  # tests of this part that gate
    of_gates: int  # tests of all parts that gate
    suite: str  # a hash of the names of all tests that were cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run."""

    verdicts: tuple[Verdict, ...]  # of the cases that were judged, in order
    tests: Mapping[str, str]  # pytest node id of each case
    texts: Mapping[str, str]  # failure text of each case that failed
    # the line to look at first for each case that failed, `src/train.py:17`, else its test's file; within the repository
    lines: Mapping[str, str] = field(default_factory=dict)
    # node ids of selected gates without a verdict: interrupted, skipped, or failed before
    not_judged: tuple[str, ...] = ()
    # what is wrong with baselines: orphaned and unreadable ones, cases that two tests have
    problems: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()  # why the run was no gate: too little was decided, or its time was over
    # baselines that the checkout changes against its trunk, as git reports them; `None` if it cannot, as in a checkout
    # without history
    baseline_edits: tuple[str, ...] | None = ()
    judge_edits: tuple[str, ...] = ()  # lines of settings and tests that it changes and that say how it is judged
    # files of the baselines that the last commit does not have as they are: recorded by this run, or, under CI, before
    # it
    needs_commit: tuple[str, ...] = ()
    compiled_as: str = ""  # the options that chose a size and a target
    elsewhere: str = ""  # the options that chose something else to compare with than the stored baselines
    project: str = ""  # the folder of the tests within the repository, `python/`; empty where it is the repository
    exit_status: int = 0  # pytest's
    uncommitted: bool = False  # whether that says no more than that baselines are not committed
    commit: str | None = None  # what was checked out; `None` if git does not know
    dirty: bool = False  # whether tracked files differed from it
    scaling: tuple[Scaling, ...] = ()  # rates of each series of cases on several numbers of devices
    run: str = ""  # names the run among all runs of the project
    moment: str = ""  # when it ended, UTC, `2026-11-25T02:30:00+00:00`
    shard: Shard | None = None  # which part of the suite it had; `None` for all of it

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The cases that failed."""
        return tuple(verdict for verdict in self.verdicts if verdict.fails)

    @property
    def green(self) -> bool:
        """Whether something was judged, everything selected was, nothing is wrong, and git has the baselines."""
        return not self.needs_commit and self.passed

    @property
    def passed(self) -> bool:
        """Whether all is well, but for a commit that may be missing."""
        status = 0 if self.uncommitted else self.exit_status
        wrong = self.failed or self.not_judged or self.problems or self.unfit or status
        return bool(self.verdicts) and not wrong

    @property
    def gate_exit(self) -> GateExit:
        """What a gate ends with: a regression that was seen stands, whatever else went wrong."""
        missing = {Status.NO_BASELINE, Status.STALE_BASELINE}
        if self.passed:  # with baselines that the commit does not have, nobody else passes
            return GateExit.MISSING if self.needs_commit else GateExit.FINE
        if self.problems or any(v.status not in missing and not v.accuses_machine for v in self.failed):
            return GateExit.REGRESSION
        only_missing = bool(self.failed) and all(v.status in missing for v in self.failed)
        if only_missing and not self.not_judged and not self.unfit:
            return GateExit.MISSING
        return GateExit.BROKEN


class UsageError(Exception):
    """What the user asked for cannot be done; the text says what was expected, what was found and what to type."""


@dataclass(slots=True)
class Review:
    """What came of asking about each case that moved."""

    moved: list[str] = field(default_factory=list)  # cases that moved or failed, in order
    # of these the ones that no baseline can make right, each with the reason
    refused: dict[str, str] = field(default_factory=dict)
    asked: bool = False  # whether there was a terminal to ask on
    all_red_accepted: bool = False  # whether nothing red is left, and the run ends with 0 for that


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The rate of a series on one number of devices."""

    devices: int  # how many worked
    per_second: float  # what they got done together, in the unit of the series
    efficiency: float  # the rate of one of them, as a share of that on the fewest devices of the series


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The same work on several numbers of devices, or so much for each of them."""

    series: str  # name that its cases share
    unit: str  # of the rates
    points: tuple[Point, ...]  # by the number of devices, at least two


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRecord(Kept):
    """What was said of a case's time: ``TimeVerdict`` and the figures of its duel, which are ``None`` without one."""

    status: str
    reason: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int | None = None
    margin: float | None = None
    sees: float | None = None
    confirmed: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRecord(Kept):
    """One thing of a case that was not the same: see ``Finding``."""

    kind: str
    name: str
    status: str
    now: float | None = None
    against: float | None = None
    allowed: float | None = None
    recorded: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord(Kept):
    """One case of a run."""

    case: str
    status: str  # its verdict, `SAME`
    fails: bool
    time: TimeRecord
    test: str = ""
    line: str = ""  # where to look first, where it fails: `src/train.py:17` within the repository, or its test's file
    hardware: str | None = None  # as verdicts name it, `cpu-amd-epyc-1`; `None` where it could not be measured
    recorded: str = ""  # `created` or `refreshed` by this run; empty if it was judged
    run_ns: float | None = None
    findings: tuple[FindingRecord, ...] = ()  # what was not the same, worst first
    causes: tuple[str, ...] = ()  # suspects, the one that explains most first
    operations: tuple[OpRow, ...] = ()  # what a profile shows to take longer, where one was taken
    baseline: str = ""
    origin: str | None = None
    bundle: str = ""  # folder of its profiles and programs, relative to the project; empty if there is none
    profiled: tuple[str, ...] = ()  # the sides whose profiles are there: today's, the baseline's or the reference's
    text: str = ""  # the failure text, where it fails
    changes: tuple[str, ...] = ()  # what changed in the program, as lines of a difference, where it fails
    allocations: tuple[str, ...] = ()  # the largest buffers, where memory decides
    amount: Amount | None = None
    roofline: Mapping[str, Any] | None = None  # of a target, the least times, as `docs/results.md` has them
    # every number of it; `None` in results of an earlier jaxgate, and where nothing was measured
    figures: Figures | None = None

    @property
    def folder(self) -> str:
        """Hardware and release line of jax; empty where one of them is not known, as of a case that could not be measured."""
        version = "" if self.figures is None else self.figures.environment.get("jax", "")
        try:
            return folder_name(self.hardware, release_line(version)) if self.hardware and version else ""
        except ValueError:  # a version without two numbers
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(Kept):
    """One run, as its ``results.json`` says it."""

    schema: int  # of the file
    jaxgate: str  # version that wrote it
    green: bool  # whether it was
    gate_exit: int  # what a gate ends with; see `GateExit`
    cases: tuple[CaseRecord, ...]
    run: str = ""  # names the run; empty in results of an earlier jaxgate, as is `moment`
    moment: str = ""  # when it ended, UTC, `2026-11-25T02:30:00+00:00`
    commit: str | None = None  # what was checked out; `None` if git does not know
    dirty: bool = False  # whether tracked files differed from it
    elsewhere: str = ""  # the options that chose something else to compare with than the stored baselines
    project: str = ""  # the folder of the tests within the repository, `python/`; empty where it is the repository
    shard: Shard | None = None
    not_judged: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()
    needs_commit: tuple[str, ...] = ()  # files of the baselines that the commit does not have as they are
    scaling: tuple[Scaling, ...] = field(default_factory=tuple)
