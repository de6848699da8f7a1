"""Verdicts: the outcome of one case, with its reasons, and all figures of it for pages and for the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from jaxgate.ext.energy.model import Energy, EnergyRatio, NoEnergy
from jaxgate.ext.growth.model import Grown
from jaxgate.ext.history.drift import Drift, FactDrift
from jaxgate.ext.opinion.model import Opinion
from jaxgate.ext.profile.model import Capture
from jaxgate.model.claim import KnownBreak
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Decision, Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.roofline import Roofline
from jaxgate.model.waiver import Waiver


class Kept:
    """What a run left, read back: a later jaxgate may have added keys; no value may be of another type, and each is a number."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"extra": "ignore", "strict": True, "allow_inf_nan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineName(Kept):
    """Which baseline a case was held against."""

    program: str  # structure of its program, as `Fingerprints.program`
    folder: str  # its folder, for example `cpu-amd-epyc-1-jax-0.12`
    commit: str | None  # the checkout's commit when it was recorded, if any
    date: str  # UTC date of its recording, `YYYY-MM-DD`


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes(Kept):
    """Times of single calls of both sides, in nanoseconds, in the order taken."""

    now: tuple[float, ...] = ()  # Today's program
    stored: tuple[float, ...] = ()  # the baseline's
    # whether they were taken in turn in one process; if not, those of the baseline are of the day of its recording
    in_turn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Kept):
    """Every number that is known of one case. They are judged elsewhere, and nothing is judged by them.

    Facts and phases stand under their names, the median call under ``run_ns``; what is not known is left out. Units are
    those of ``Facts`` and ``Phases``: bytes, FLOPs, counts, nanoseconds.
    """

    now: Mapping[str, float]  # Today's
    # the baseline's; where it comes from another machine or jax, what its program has here. Its phases and `run_ns` are
    # always those of its recording.
    stored: Mapping[str, float] = field(default_factory=dict)
    reference: Mapping[str, float] = field(default_factory=dict)  # the reference's, of cases that have one
    # what may change a program or its speed besides the code: versions, flags, driver
    environment: Mapping[str, str] = field(default_factory=dict)
    program: str = ""  # structure of today's program, as `Fingerprints.program`
    baseline: BaselineName | None = None  # which baseline it was held against; `None` if there is none
    times: CallTimes = field(default_factory=CallTimes)  # single calls; empty where nothing was timed
    growth: Mapping[str, Grown] = field(default_factory=dict)  # what it has at other sizes, and what the baseline has
    stored_growth: Mapping[str, Grown] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that made facts worse."""

    text: str  # an argument, an operation, a variable, with its line where known
    explains: frozenset[str]  # quantities that it can have made worse
    sure: bool = True  # whether it was seen, and is not a guess from what else there is
    root: bool = False  # whether the program is built otherwise, and other operations and their times follow from that

    def __str__(self) -> str:
        """Its text; a guess says that it is one."""
        return self.text if self.sure else f"perhaps {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked."""

    # a fact against its baseline, a claim about the code, or the state of the baseline itself; `environment` is a fact
    # of the baseline's own program, which another compiler makes something else of; `drift` is what a quantity lost
    # since the first run of the history
    kind: Literal["fact", "time", "phase", "claim", "baseline", "case", "environment", "drift"]
    name: str  # the fact's name or the claim's formula
    status: Status  # the outcome
    now: float | None = None  # Today's number, if there is one
    against: float | None = None  # the number it is held against
    allowed: float | None = None  # the worst number that would have passed
    # the number in the baseline, where it is held against what the baseline's program has here
    recorded: float | None = None
    detail: str = ""  # for people: the reason of a claim, or why something could not be checked
    decision: Decision | None = None  # the duel behind a claim about run time
    # ratios of the duels in fresh processes, where a claim about run time was checked again
    confirmed: tuple[float, ...] = ()
    remembered: bool = False  # the duel was run earlier, with the same programs
    waiver: Waiver | None = None  # the waiver that speaks of it, where it is worse than allowed
    # why that waiver does not apply; empty if it does, and the status is then WAIVED
    not_waived: Literal["", "expired", "exceeded"] = ""
    blames_machine: bool = False  # INVALID for no other reason than that the machine is the suspect
    # of a claim: why it is known not to hold with this release; SAME is then an unexpected pass
    known_break: KnownBreak | None = None
    drift: Drift | FactDrift | None = None  # what the history says, where that is what was checked


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeVerdict:
    """What is known about steady-state time."""

    status: Status
    reason: str
    decision: Decision | None = None  # the duel behind it; `None` for identity, or where none was run
    confirmed: tuple[float, ...] = ()  # ratios of the duels in fresh processes, where a slow-down was checked again
    # whether it would be undecided on any machine: no fingerprint covers what runs, and no duel can be run
    anywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a difference comes from, by the truth table over source, program and environment."""

    # `nothing changed`, `environment`, `code`, `JAX tracing and lowering`, `values outside the source` (constants,
    # arguments, configuration), `code outside the subject's source` (methods of its arguments, libraries), `the test's
    # own source did not change` (no program is known) or `not separable here`
    place: str
    differences: tuple[str, ...] = ()  # the fingerprint and environment differences, one per line
    separate: str = ""  # the command that separates causes, where several changed at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a call takes, and gets done for it. All of it is for the eye: nothing is judged by it."""

    run_ns: float | None = None  # median time of a call
    p99_ns: int | None = None  # 99th percentile of single calls, where the case is about latency
    amount: Amount | None = None  # what a call gets done
    utilisation: float | None = None  # share of the chips' peak rate that its products reach (MFU), where that is known
    roofline: Roofline | None = None  # the least time that each resource of a target needs for it
    energy: Energy | NoEnergy | None = None  # beyond idle, or why that is not known; `None` where nobody asked
    duel_energy: EnergyRatio | NoEnergy | None = None  # energy of both sides of a duel


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineNote:
    """Where a case's baseline comes from, and what became of it in this run."""

    described: str = ""  # one line: commit, date, release of jax
    recorded: Literal["", "created", "refreshed"] = ""  # what became of it, if anything did
    replaced: tuple[
        str, ...
    ] = ()  # structures of the programs that the one before named; nothing else may need them now
    # a case whose test is gone and whose baseline has this one's program, where this one has none; empty where no such
    # case is known, or several are
    renamed_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a person looks at to see why."""

    # the largest buffers, where memory decides: by the compiler's or the allocator's own list
    allocations: tuple[str, ...] = ()
    line: str = ""  # the source line to look at first, as `file:line`: the first cause's, else where the subject begins
    changes: tuple[str, ...] = ()  # what changed in the program since its baseline, as lines of a difference
    # where its profiles and programs are, and where the time goes, once they were captured
    capture: Capture | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one case."""

    case: str
    hardware: HardwareKey | None
    status: Status
    fails: bool  # whether the test fails; depends on strictness for a missing or stale baseline
    findings: tuple[Finding, ...]  # everything checked, worst first
    time: TimeVerdict
    origin: Origin | None = None
    causes: tuple[Cause, ...] = ()  # what made it worse, the cause that explains most first
    baseline: BaselineNote = field(default_factory=BaselineNote)
    cost: Cost = field(default_factory=Cost)
    evidence: Evidence = field(default_factory=Evidence)
    accuses_machine: bool = False  # whether it fails for no other reason than that the machine is the suspect
    opinion: Opinion | None = None  # what a second opinion says of its result; `None` where none was wanted
    # every number of it and of its baseline, for pages and the history; `None` if it could not be measured
    figures: Figures | None = None

    @property
    def changed_untimed(self) -> bool:
        """Whether its program changed, nothing else is wrong, and its time was not judged."""
        changed = self.origin is not None and "program changed" in self.origin.differences
        return changed and self.status is self.time.status is Status.UNDECIDED

    @property
    def undecided_anywhere(self) -> bool:
        """Whether it is undecided by its time alone, and no other machine would decide that."""
        own = all(finding.status is not Status.UNDECIDED for finding in self.findings if finding.kind != "time")
        return self.status is Status.UNDECIDED and self.time.anywhere and own

    @property
    def worst(self) -> Finding | None:
        """The finding that decides."""
        return self.findings[0] if self.findings else None
