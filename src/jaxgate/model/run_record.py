"""What a run left in ``results.json``, as it is read back for a page, for the history and for a comparison of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxgate.model.figures import KEPT, Figures
from jaxgate.model.machines.release_line import folder_name, release_line
from jaxgate.model.measured.profile import OpRow
from jaxgate.model.outcome import Scaling
from jaxgate.model.workloads.computation import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRecord:
    """What was said of a case's time: ``TimeVerdict`` and the figures of its duel, which are ``None`` without one."""

    __pydantic_config__: ClassVar[Any] = KEPT

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
class FindingRecord:
    """One thing of a case that was not the same: see ``Finding``."""

    __pydantic_config__: ClassVar[Any] = KEPT

    kind: str
    name: str
    status: str
    now: float | None = None
    against: float | None = None
    allowed: float | None = None
    recorded: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """One case of a run.

    Attributes:
        hardware: As verdicts name it, ``cpu-amd-epyc-1``; ``None`` where it could not be measured.
        status: Its verdict, ``SAME``.
        recorded: ``created`` or ``refreshed`` by this run; empty if it was judged.
        findings: What was not the same, worst first.
        causes: Suspects, the one that explains most first.
        operations: What a profile shows to take longer, where one was taken.
        text: The failure text, where it fails.
        changes: What changed in the program, as lines of a difference, where it fails.
        allocations: The largest buffers, where memory decides.
        bundle: Folder of its profiles and programs, relative to the project; empty if there is none.
        profiled: The sides whose profiles are there: today's, the baseline's or the reference's.
        roofline: Of a target, the least times, as ``docs/results.md`` has them.
        figures: Every number of it; ``None`` in results of an earlier jaxgate, and where nothing was measured.
    """

    __pydantic_config__: ClassVar[Any] = KEPT

    case: str
    status: str
    fails: bool
    time: TimeRecord
    test: str = ""
    hardware: str | None = None
    recorded: str = ""
    run_ns: float | None = None
    findings: tuple[FindingRecord, ...] = ()
    causes: tuple[str, ...] = ()
    operations: tuple[OpRow, ...] = ()
    baseline: str = ""
    origin: str | None = None
    bundle: str = ""
    profiled: tuple[str, ...] = ()
    text: str = ""
    changes: tuple[str, ...] = ()
    allocations: tuple[str, ...] = ()
    amount: Amount | None = None
    roofline: Mapping[str, Any] | None = None
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
class RunRecord:
    """One run, as its ``results.json`` says it.

    Attributes:
        schema: Of the file.
        jaxgate: Version that wrote it.
        run: Names the run; empty in results of an earlier jaxgate, as is ``moment``.
        moment: When it ended, UTC, ``2026-11-25T02:30:00+00:00``.
        green: Whether it was.
        gate_exit: What a gate ends with; see ``GateExit``.
        commit: What was checked out; ``None`` if git does not know.
        dirty: Whether tracked files differed from it.
        elsewhere: The options that chose something else to compare with than the stored baselines.
        needs_commit: Files of the baselines that the commit does not have as they are.
    """

    __pydantic_config__: ClassVar[Any] = KEPT

    schema: int
    jaxgate: str
    green: bool
    gate_exit: int
    cases: tuple[CaseRecord, ...]
    run: str = ""
    moment: str = ""
    commit: str | None = None
    dirty: bool = False
    elsewhere: str = ""
    not_judged: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()
    needs_commit: tuple[str, ...] = ()
    scaling: tuple[Scaling, ...] = field(default_factory=tuple)
