"""Verdicts: the outcome of one case, with its reasons.

The figures of a case: what was measured of it and what stands in its baseline, for pages and for the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from jaxgate.ext.energy.model import Energy, EnergyRatio, NoEnergy
from jaxgate.ext.history.drift import Drift, FactDrift
from jaxgate.ext.opinion.model import Opinion
from jaxgate.ext.profile.model import Capture
from jaxgate.model.claim import KnownBreak
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Decision, Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import Roofline
from jaxgate.model.waiver import Waiver
from jaxgate.model.workloads.contrast import ContrastResult

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that made facts worse.

    Attributes:
        text: An argument, an operation, a variable, with its line where known.
        explains: Quantities that it can have made worse.
        sure: Whether it was seen, and is not a guess from what else there is.
        root: Whether the program is built otherwise, and other operations and their times follow from that.
        amount: Whether it is an amount of work, of which a profile says better where the time goes.
    """

    text: str
    explains: frozenset[str]
    sure: bool = True
    root: bool = False
    amount: bool = False

    def __str__(self) -> str:
        """Its text; a guess says that it is one."""
        return self.text if self.sure else f"perhaps {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked.

    Attributes:
        kind: A fact against its baseline, a claim about the code, or the state of the baseline itself; ``environment``
            is a fact of the baseline's own program, which another compiler makes something else of; ``drift`` is what a quantity
            lost since the first run of the history.
        name: The fact's name or the claim's formula.
        status: The outcome.
        now: Today's number, if there is one.
        against: The number it is held against.
        allowed: The worst number that would have passed.
        recorded: The number in the baseline, where it is held against what the baseline's program has here.
        detail: For people: the reason of a claim, or why something could not be checked.
        decision: The duel behind a claim about run time.
        confirmed: Ratios of the duels in fresh processes, where a claim about run time was checked again.
        remembered: The duel was run earlier, with the same programs.
        waiver: The waiver that speaks of it, where it is worse than allowed.
        blames_machine: INVALID for no other reason than that the machine is the suspect.
        known_break: Of a claim: why it is known not to hold with this release; SAME is then an unexpected pass.
        not_waived: Why that waiver does not apply; empty if it does, and the status is then WAIVED.
        drift: What the history says, where that is what was checked.
    """

    kind: Literal["fact", "time", "phase", "claim", "baseline", "case", "environment", "drift"]
    name: str
    status: Status
    now: float | None = None
    against: float | None = None
    allowed: float | None = None
    recorded: float | None = None
    detail: str = ""
    decision: Decision | None = None
    confirmed: tuple[float, ...] = ()
    remembered: bool = False
    waiver: Waiver | None = None
    not_waived: Literal["", "expired", "exceeded"] = ""
    blames_machine: bool = False
    known_break: KnownBreak | None = None
    drift: Drift | FactDrift | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeVerdict:
    """What is known about steady-state time.

    Attributes:
        decision: The duel behind it; ``None`` for identity, or where none was run.
        confirmed: Ratios of the duels in fresh processes, where a slow-down was checked again.
        anywhere: Whether it would be undecided on any machine: no fingerprint covers what runs, and no duel can be run.
    """

    status: Status
    reason: str
    decision: Decision | None = None
    confirmed: tuple[float, ...] = ()
    anywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a difference comes from, by the truth table over source, program and environment.

    Attributes:
        place: ``nothing changed``, ``environment``, ``code``, ``JAX tracing and lowering``, ``values outside
            the source`` (constants, arguments, configuration), ``code outside the subject's source`` (methods of its
            arguments, libraries), ``the test's own source did not change`` (no program is known) or ``not separable here``.
        differences: The fingerprint and environment differences, one per line.
        separate: The command that separates causes, where several changed at once.
    """

    place: str
    differences: tuple[str, ...] = ()
    separate: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one case.

    Attributes:
        findings: Everything checked, worst first.
        fails: Whether the test fails; depends on strictness for a missing or stale baseline.
        causes: What made it worse, the cause that explains most first.
        allocations: The largest buffers, where memory decides: by the compiler's or the allocator's own list.
        changes: What changed in the program since its baseline, as lines of a difference.
        baseline: One line on where the baseline comes from.
        run_ns: Median time of a call, for the eye only.
        amount: What a call gets done; for the eye only.
        utilisation: Share of the chips' peak rate that its products reach (MFU), where that is known; likewise.
        roofline: The least time that each resource of a target needs for it; for the eye only.
        energy: What a call draws beyond idle, or why that is not known; ``None`` where nobody asked; for the eye only.
        duel_energy: The same of both sides of a duel; likewise.
        p99_ns: 99th percentile of single calls, where the case is about latency; for the eye only.
        recorded: What became of its baseline in this run, if anything did.
        replaced: Structures of the programs that the replaced baseline named; nothing else may need them now.
        renamed_from: A case whose test is gone and whose baseline has this one's program, where this one has none; empty
            where no such case is known, or several are.
        accuses_machine: Whether it fails for no other reason than that the machine is the suspect.
        capture: Where its profiles and programs are, and where the time goes, once they were captured.
        opinion: What a second opinion says of its result; ``None`` where none was wanted.
        figures: Every number of it and of its baseline, for pages and the history; ``None`` if it could not be measured.
        contrast: The sides of a contrast, and how they compare; ``None`` of any other case.
    """

    case: str
    hardware: HardwareKey | None
    status: Status
    fails: bool
    findings: tuple[Finding, ...]
    time: TimeVerdict
    origin: Origin | None = None
    causes: tuple[Cause, ...] = ()
    allocations: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    baseline: str = ""
    run_ns: float | None = None
    p99_ns: int | None = None
    amount: Amount | None = None
    utilisation: float | None = None
    roofline: Roofline | None = None
    energy: Energy | NoEnergy | None = None
    duel_energy: EnergyRatio | NoEnergy | None = None
    recorded: Literal["", "created", "refreshed"] = ""
    replaced: tuple[str, ...] = ()
    renamed_from: str = ""
    accuses_machine: bool = False
    capture: Capture | None = None
    opinion: Opinion | None = None
    contrast: ContrastResult | None = None
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
