"""One run that gates: the services that it judges with, and what it found so far."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jaxgate.engine.case_names import CaseNames
from jaxgate.engine.duels.baseline_duel import BaselineDuels, Margins
from jaxgate.engine.duels.duel_processes import DuelBudget
from jaxgate.engine.duels.reference_duel import ReferenceDuels
from jaxgate.engine.instruments import Instruments
from jaxgate.engine.record import Candidate
from jaxgate.engine.repeats import Provisional
from jaxgate.engine.run.gate_cost import time_left
from jaxgate.engine.run.progress import Progress
from jaxgate.ext.history.budget import DriftBudget
from jaxgate.ext.history.drift import DriftStart
from jaxgate.ext.opinion.case import SecondOpinions
from jaxgate.ext.profile.evidence import EvidenceCollector
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import OpenCompilers
from jaxgate.ext.times.case import StoredTimesClock
from jaxgate.ext.times.kept import TimesStore
from jaxgate.ext.upgrade.environment_runs import Comparison
from jaxgate.judge.ageing import Ageing, find_ageing
from jaxgate.judge.difference import Difference
from jaxgate.keep.baselines import BaselineStore
from jaxgate.keep.cache import DuelCache, FloorStore, ReferenceCache
from jaxgate.keep.git import read_provenance
from jaxgate.keep.machine import Machine
from jaxgate.keep.programs import open_programs
from jaxgate.model.baseline import Provenance
from jaxgate.model.machine import release_line
from jaxgate.model.measurement import Fingerprints
from jaxgate.model.verdict import Verdict
from jaxgate.model.waiver import TIME, Waiver
from jaxgate.model.workload import Case, Cost, Tolerance
from jaxgate.observe.duel.sides import Opponents
from jaxgate.observe.machine.jax_settings import know_defaults
from jaxgate.processes.pytest_child import Side, child_environment, naming
from jaxgate.report.text import explain
from jaxgate.settings import Settings, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What no baseline holds of a case."""

    tolerances: tuple[Tolerance, ...]  # facts of it that may move by another amount than the policy says
    unknown: Mapping[str, str]  # facts that could not be had, each with the reason


@dataclass(slots=True, kw_only=True)
class SessionResult:
    """What a run found so far. Cases are added to it; nothing is taken away."""

    verdicts: list[Verdict] = field(default_factory=list)  # verdicts of the cases that were judged to the end, in order
    provisional: dict[str, Provisional] = field(default_factory=dict)  # cases that wait for fresh processes, by name
    tests: dict[str, str] = field(default_factory=dict)  # the cases of this run, each with the test that has it
    # tests that ended before they had called all of their gates, as far as is known
    unfinished: list[str] = field(default_factory=list)
    # tests whose cases have no program for the target of this run, each with the reason
    left_out: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  # tests of stored baselines that no gate of a whole run asked for
    clashes: list[str] = field(default_factory=list)  # cases that two tests have, a text each
    # what a case brings for another process that compares it, by name
    brought: dict[str, Brought] = field(default_factory=dict)
    # fingerprints of the cases that have no baseline
    new_programs: dict[str, Fingerprints] = field(default_factory=dict)
    # fingerprints of the programs, by case, that are not their baseline's
    changed_programs: dict[str, str] = field(default_factory=dict)
    # when the stored programs that baselines of this run name were recorded, by case
    dates: dict[str, str] = field(default_factory=dict)
    # release lines of jax, by case, of the baselines that another one recorded
    other_lines: dict[str, str] = field(default_factory=dict)
    # what a review may accept, by case; or why it cannot
    candidates: dict[str, Candidate | str] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)  # what gates took, by test
    accused: int = 0  # tests that failed because the machine is the suspect
    time_over: str = ""  # why the run stopped before it was done; empty if it did not

    def add_name(self, case: str, test: str) -> str:
        """Note whose a case is; gives why it cannot be, where another test has it: they would share one baseline."""
        owner = self.tests.setdefault(case, test)
        if owner == test:
            return ""
        one_function = owner.partition("[")[0] == test.partition("[")[0]
        mend = (
            "put what differs into the name: gate(..., name=f'train-{size}')"
            if one_function
            else "give one of them a name of its own: gate(..., name='family/sentence')"
        )
        problem = f"expected one test for the case `{case}`, found two: {owner} and {test}\n{mend}"
        self.clashes.append(problem)
        return problem

    def note_program(self, case: Case, now: Fingerprints, difference: Difference | None) -> None:
        """Note a program that may be that of a renamed case, or that is not its baseline's."""
        if difference is None:
            self.new_programs[case.name] = now
        elif not difference.same_program:
            self.changed_programs[case.name] = now.program

    def bring(self, case: Case, unknown: Mapping[str, str]) -> None:
        """Note what no baseline holds of a case."""
        self.brought[case.name] = Brought(tolerances=tuple(case.tolerances), unknown=dict(unknown))

    def not_judged(self, selected: AbstractSet[str]) -> set[str]:
        """Selected tests without a judged case, and what was dropped; less those with no program for this run's target."""
        judged = {self.tests.get(verdict.case) for verdict in self.verdicts}
        return ({*selected} - judged | self.dropped) - self.left_out.keys()

    def ageing(self, today: date) -> Ageing | None:
        """The stored programs of this run's cases that should be recorded again."""
        again = {verdict.case for verdict in self.verdicts if verdict.baseline.recorded}
        return find_ageing({case: date for case, date in self.dates.items() if case not in again}, today=today)


class GateSession:
    """The services of one run, opened at its first gate, so that runs without gates pay nothing. None is exchanged.

    ``cache`` is ``None`` if nothing is remembered, ``terminal`` if no progress is shown; on ``waits`` it is said even
    then that this run waits for the machine. ``comparison`` is what both environments recorded, ``failed_there`` what
    failed in the revision that is compared with. ``target`` is hardware that is not there, for which all cases are
    compiled.
    """

    def __init__(
        self,
        settings: Settings,
        project: Path,
        *,
        cache: Path | None = None,
        terminal: int | None = None,
        waits: int | None = None,
        instruments: Instruments | None = None,
        comparison: Comparison | None = None,
        waivers: tuple[Waiver, ...] = (),
        drift_starts: tuple[DriftStart, ...] = (),
        failed_there: Mapping[str, str] = MappingProxyType({}),
        known_provenance: Provenance | None = None,
        selected: AbstractSet[str] = frozenset(),
        costs: Mapping[str, Cost] = MappingProxyType({}),
        target: Target | None = None,
    ) -> None:
        self.settings: Final = settings
        self.project: Final = project
        self.terminal: Final = terminal
        self._waits: Final = waits
        self.comparison: Final = comparison
        self.waivers: Final = waivers
        self.drift_starts: Final = drift_starts
        self.failed_there: Final = failed_there
        self._known_provenance: Final = known_provenance
        self.instruments: Final = instruments or Instruments()
        know_defaults(self.instruments.jax_defaults())
        self.today: Final = self.instruments.today()
        self.result: Final = SessionResult()
        self._machine: Final = Machine()
        line = release_line(version("jax"))
        self.store: Final = BaselineStore(settings.baselines, line)
        self.names: Final = CaseNames(project, (settings.baselines, settings.stored), settings.namesakes)
        self.programs: Final = open_programs(
            settings.baselines, settings.programs, None if cache is None else cache / "programs"
        )
        self.again: Final = Side(project, child_environment(settings) | naming(settings), "measuring again")
        self.floors: Final = FloorStore(None if cache is None else cache / "floors")
        self.references: Final = ReferenceCache(None if cache is None else cache / "references")
        self.margins: Final = Margins(self.floors)
        budget = DuelBudget(settings.budget_s)
        self.baseline_duels: Final = BaselineDuels(
            programs=self.programs,
            budget=budget,
            margins=self.margins,
            opponents=Opponents(self.references),
            instruments=self.instruments,
            variables=self.again.environment,
        )
        self.reference_duels: Final = ReferenceDuels(budget, DuelCache(self.references), self.instruments)
        drift = None if settings.elsewhere else settings.drift_budget  # elsewhere no ratio is to a stored baseline
        self.drift_budget: Final = DriftBudget(
            drift,
            None if drift is None else self.instruments.open_history(settings, project),
            drift_starts,
            today=self.today,
            moment=self.instruments.moment,
            commit=lambda: self.provenance.commit,
        )
        self.opinions: Final = SecondOpinions(settings, self.instruments)
        times = None if settings.elsewhere else TimesStore(settings.baselines, line)
        self.stored_times: Final = StoredTimesClock(times, self.again)
        for_another = settings.other_side or settings.as_measured
        self.evidence: Final = EvidenceCollector(
            None if for_another or comparison else settings.artifacts,
            project,
            self.programs,
            instruments=self.instruments,
            bundles=settings.update is not Update.BOTH,
        )
        self.meters: Final = None if for_another else self.instruments.find_meters()
        self._selected: Final = selected
        self._costs: Final = costs
        self.target: Final = target
        self.compilers: Final = OpenCompilers(self.instruments.open_target)
        self.evidence.problems += [self._machine.problem] if self._machine.problem else []

    @property
    def compiler(self) -> TargetCompiler | None:
        """The compiler of all cases; ``None`` where they run here."""
        return None if self.target is None else self.compilers.of(self.target)

    @property
    def strict(self) -> bool:
        """Whether a case without a baseline fails; one that another revision does not have is new."""
        return self.settings.strict and not self.settings.against

    @property
    def waivers_in_force(self) -> tuple[Waiver, ...]:
        """All waivers, less those of run time where another program than the stored one is compared: they would count twice."""
        return tuple(w for w in self.waivers if not (self.settings.elsewhere and w.quantity == TIME))

    @cached_property
    def provenance(self) -> Provenance:
        """Where a recording comes from, read before the first file is written: our files must not make the checkout dirty."""
        return self._known_provenance or read_provenance(self.project)

    def progress(self, case: str) -> Progress:
        """The stages of a case: shown, and with the machine to itself where they are timed."""
        self._machine.about = f"{case} of {self.project}"
        return Progress(
            self.terminal,
            case,
            self._machine,
            waits=self._waits,
            patience_s=self.instruments.patience_s,
            left=lambda: time_left(self._selected, self._costs, self.result.tests.values()),
        )

    def explain(self, verdict: Verdict, test: str) -> str:
        """Why a case fails, with the options of this run in its commands."""
        return explain(verdict, test=test, compiled_as=self.settings.compiled_as, elsewhere=self.settings.elsewhere)

    def folders(self, verdicts: Iterable[Verdict]) -> list[str]:
        """Where the baselines of these cases lie: a folder for each hardware, all of this release line."""
        return sorted({self.store.folder(verdict.hardware) for verdict in verdicts if verdict.hardware})

    def short(self, path: Path) -> str:
        """A path as the user knows it."""
        return os.path.relpath(path, self.project)
