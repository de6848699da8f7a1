"""What one pytest run knows: settings, baselines, verdicts, and what it recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest

from jaxgate.judge import judge, judge_invalid
from jaxgate.judge.ageing import Ageing, ageing
from jaxgate.judge.order import ALWAYS_FAIL, has_red_phase, waits_for_confirmation
from jaxgate.judge.waivers import apply_waivers
from jaxgate.keep.baselines import BaselineStore, CorruptBaselineError
from jaxgate.keep.duels import DuelCache
from jaxgate.keep.floors import FloorStore
from jaxgate.keep.log import append_log
from jaxgate.keep.machine import Machine
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.provenance import provenance, utc_today
from jaxgate.keep.references import ReferenceCache
from jaxgate.model import (
    Case,
    HardwareKey,
    InvalidCaseError,
    Provenance,
    Record,
    ReferenceDuel,
    Verdict,
    Waiver,
)
from jaxgate.model.cost import Cost
from jaxgate.model.waiver import TIME
from jaxgate.observe.observed import Observed
from jaxgate.observe.recompiled import Opponents
from jaxgate.plugin.accepting import Candidate, record_case
from jaxgate.plugin.afterwards import Afterwards
from jaxgate.plugin.again import PhaseRepeat
from jaxgate.plugin.against_reference import ReferenceDuels, Told
from jaxgate.plugin.calibrated import Calibrated
from jaxgate.plugin.capturing import Captures
from jaxgate.plugin.confirm import Suspect, accuses
from jaxgate.plugin.explaining import judge_with_buffers, with_changes
from jaxgate.plugin.launching import Comparison
from jaxgate.plugin.margins import Margins
from jaxgate.plugin.options import Settings
from jaxgate.plugin.progress import Progress
from jaxgate.plugin.reviewing import Review, candidate
from jaxgate.plugin.stored import Repeat, StoredClock
from jaxgate.plugin.timing import Rematch, Stopwatch, Timed
from jaxgate.plugin.updating import Update


class Run:
    """The state of one run. Made at the first gate, so that runs without gates pay nothing."""

    def __init__(
        self,
        settings: Settings,
        project: Path,
        cache: Path | None,
        stderr: int | None,
        comparison: Comparison | None = None,
        *,
        waivers: tuple[Waiver, ...] = (),
        failed_there: Mapping[str, str] | None = None,
        made_from: Provenance | None = None,
    ) -> None:
        self.settings = settings
        self.project = project
        self._stderr = stderr
        self._made_from = made_from
        self.machine = Machine()
        self.comparison = comparison
        self.store = BaselineStore(settings.baselines)
        self.programs = ProgramStore(settings.baselines)
        self.today = utc_today()
        self.waivers = waivers
        self.idle_waivers: list[tuple[Waiver, str]] = []
        self.floors = FloorStore(None if cache is None else cache / "floors")
        self.margins = Margins(self.floors)
        quiet = () if settings.elsewhere else settings.quiet
        self.stored_clock = StoredClock(quiet, settings.baselines, project)
        self.references = ReferenceCache(None if cache is None else cache / "references")
        self.stopwatch = Stopwatch(
            self.programs, settings.budget_s, self.today, margins=self.margins, opponents=Opponents(self.references)
        )
        measures_only = (
            settings.other_side or settings.as_measured or settings.calibrate or settings.peak_into or comparison
        )
        self.captures = Captures(
            None if measures_only else settings.artifacts,
            project,
            self.programs,
            lambda: self.stopwatch.opponent,
            bundles=settings.update is not Update.BOTH,
        )
        self.captures.problems += [self.machine.problem] if self.machine.problem else []
        self.reference_duels = ReferenceDuels(self.stopwatch, DuelCache(self.references))
        self.verdicts: list[Verdict] = []
        self.calibrated = Calibrated()
        self.suspects: dict[str, Suspect] = {}
        self.rematches: dict[str, list[Rematch | Repeat | PhaseRepeat]] = {}
        self.records: dict[str, Record | None] = {}  # of the case that is being judged
        self.recording: set[str] = set()  # cases that are recorded instead of judged
        self.candidates: dict[str, Candidate | str] = {}  # what a review may accept, or why it cannot
        self.reviewed: Review | None = None
        self.afterwards = Afterwards()
        self.adopted: dict[str, str] = {}
        self.failed_there = failed_there or {}  # by test, in the revision that is compared with
        self.dates: dict[str, str] = {}  # of the stored programs that baselines of this run name
        self.costs: dict[str, Cost] = {}
        self.accused = 0  # tests that failed because the machine is the suspect
        self.only_machine = False  # and for no other reason
        self.ended_unfit = False  # nothing failed, and too little was decided
        self.time_over = ""  # why this run stopped before it was done
        self.clashes: list[str] = []  # cases that two tests have
        self._tests: dict[str, str] = {}

    def progress(self, case: str) -> Progress:
        """The stages of a case: told, and with the machine to itself where they are timed."""
        return Progress(self._stderr, case, self.machine)

    def claim_name(self, case: str, test: str) -> None:
        """Take a case's name for a test.

        Raises:
            pytest.fail.Exception: If another test has it: they would share one baseline.
        """
        problem = self.add_name(case, test)
        if problem:
            pytest.fail(problem, pytrace=False)

    def add_name(self, case: str, test: str) -> str:
        """Note whose a case is; gives why it cannot be, where another test has it."""
        owner = self._tests.setdefault(case, test)
        if owner == test:
            return ""
        problem = (
            f"expected one test for the case `{case}`, found two: {owner} and {test}\n"
            "give one of them a name of its own: gate(..., name='family/sentence')"
        )
        self.clashes.append(problem)
        return problem

    def judge(self, case: Case, observed: Observed, *, test: str, progress: Callable[[str], None]) -> Verdict:
        """Judge what was observed against its baseline, with a duel where the program changed; or record it."""
        now = observed.measurement
        if self.comparison is not None:
            verdict = self.comparison.judge(case, now, test=test)
            return apply_waivers(verdict, self._in_force, today=self.today, strict=False)
        recording = self._records(now.hardware, case.name)
        try:
            record = self.store.load(now.hardware, case.name)
        except CorruptBaselineError as error:
            if not recording:
                return replace(judge_invalid(case.name, self._unreadable(error)), hardware=now.hardware)
            record = None
        if record is not None and record.baseline.program.stored:
            self.dates[case.name] = record.baseline.provenance.date
        timed = Timed(record)
        try:
            if not recording:
                timed = self._time(case, observed, record, test=test, progress=progress)
            told = self._against_reference(case, observed, progress)
        except InvalidCaseError as error:
            return replace(judge_invalid(case.name, error), hardware=now.hardware)
        self.records[case.name] = timed.record
        self.rematches[case.name] = [*([] if timed.rematch is None else [timed.rematch]), *told.rematches]
        judged = partial(
            judge,
            case.name,
            case.claims,
            record=timed.record,
            strict=self._strict,
            tolerances=case.tolerances,
            elsewhere=self.store.elsewhere(now.hardware, case.name),
            decision=timed.decision,
            no_duel=timed.why_not,
            same_executable=timed.same_executable,
            reference_duel=told.by,
        )
        verdict = judge_with_buffers(judged, observed)
        if record is not None and has_red_phase(verdict):
            again = PhaseRepeat(project=self.project, test=test, now=now, before=record.baseline.phases)
            self.rematches[case.name].append(again)
        if recording:  # a waived claim is broken all the same, and never recorded
            return record_case(self, observed, verdict, record, test=test)
        self._keep_candidate(observed, verdict, record, test)
        if verdict.status in ALWAYS_FAIL:
            verdict = with_changes(verdict, observed, record, self.programs)
        return apply_waivers(verdict, self._in_force, today=self.today, strict=self._strict)

    def _records(self, hardware: HardwareKey, case: str) -> bool:
        """Whether a case is recorded instead of judged."""
        if self.settings.update.records(exists=os.path.lexists(self.store.path(hardware, case))):
            self.recording.add(case)
        return case in self.recording

    def _keep_candidate(self, observed: Observed, verdict: Verdict, record: Record | None, test: str) -> None:
        """Keep what a review may accept."""
        if self.settings.update is Update.REVIEW:
            self.candidates |= candidate(observed, verdict, record, test=test, provenance=lambda: self.made_from)

    def _time(
        self, case: Case, observed: Observed, record: Record | None, *, test: str, progress: Callable[[str], None]
    ) -> Timed:
        """Without the clock, too: facts are held against those of the baseline's program, compiled here."""
        timed = self.stopwatch.time(observed, record, progress)
        if observed.measurement.samples is None:
            return timed
        return self.stored_clock.time(case.name, test, observed.measurement, record, timed)

    @property
    def _in_force(self) -> Sequence[Waiver]:
        """A ratio to the stored baseline says nothing of anything else: it could accept one loss twice."""
        return [w for w in self.waivers if not (self.settings.elsewhere and w.quantity == TIME)]

    def _against_reference(self, case: Case, observed: Observed, progress: Callable[[str], None]) -> Told:
        if self.settings.as_measured:
            return Told(ReferenceDuel(why_not="this recording is only held against, its claims are not judged"))
        return self.reference_duels.time(case.claims, observed, progress)

    def suspect(self, verdict: Verdict, row: dict[str, Any]) -> Suspect | None:
        """The case, if only fresh processes can say whether it is red; a recording does not wait for them."""
        rematches = self.rematches.pop(verdict.case, [])  # arrays and programs that nothing else needs
        recording = verdict.case in self.recording
        if recording or self.comparison is not None or not waits_for_confirmation(verdict):
            return None
        rematches = [
            r
            for r in rematches
            if (has_red_phase(verdict) if isinstance(r, PhaseRepeat) else accuses(verdict, r.claim))
        ]
        return Suspect(verdict, rematches, row, strict=self._strict)

    def _unreadable(self, error: CorruptBaselineError) -> InvalidCaseError:
        path = self.short(error.path)
        return InvalidCaseError(
            "reading the baseline",
            f"{path} {error.reason}; restore it (git checkout -- {path}) or record it again with --perf-update",
        )

    @property
    def _strict(self) -> bool:
        return self.settings.strict and not self.settings.against  # a new case has no other side

    @property
    def ageing(self) -> Ageing | None:
        """The stored programs of this run's cases that should be recorded again."""
        again = {verdict.case for verdict in self.verdicts if verdict.recorded}
        kept = {case: date for case, date in self.dates.items() if case not in again}
        return ageing(kept, today=self.today)

    @cached_property
    def made_from(self) -> Provenance:
        """Taken before the first file is written: our own writing must not make the checkout dirty."""
        return self._made_from or provenance(self.project)

    def write_log(self) -> None:
        """Add a line to the log for what this run recorded, one for each hardware key."""
        recorded = [verdict for verdict in self.verdicts if verdict.recorded and verdict.hardware]
        for slug in sorted({verdict.hardware.slug for verdict in recorded if verdict.hardware}):
            here = [verdict for verdict in recorded if verdict.hardware and verdict.hardware.slug == slug]
            append_log(
                self.settings.baselines,
                created=[verdict.case for verdict in here if verdict.recorded == "created"],
                refreshed=[verdict.case for verdict in here if verdict.recorded == "refreshed"],
                hardware=slug,
                why=self.settings.why,
            )

    @property
    def tests_by_case(self) -> Mapping[str, str]:
        """The cases of this run, each with the test that has it."""
        return self._tests

    def short(self, path: Path) -> str:
        """A path as the user knows it."""
        return str(path.relative_to(self.project)) if path.is_relative_to(self.project) else str(path)
