"""What one pytest run knows: settings, baselines, verdicts, and what it recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import pytest

from jaxgate.judge import judge, judge_invalid
from jaxgate.judge.ageing import Ageing, ageing
from jaxgate.judge.waivers import apply_waivers
from jaxgate.keep.adopt import adopt
from jaxgate.keep.baselines import BaselineStore, CorruptBaselineError
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.provenance import append_log, provenance, utc_today
from jaxgate.keep.references import ReferenceCache
from jaxgate.model import (
    Baseline,
    Case,
    InvalidCaseError,
    Provenance,
    Record,
    Status,
    Verdict,
    Waiver,
)
from jaxgate.model.calibration import CaseCalibration
from jaxgate.model.cost import Cost
from jaxgate.model.waiver import TIME
from jaxgate.observe.exporting import serves_as
from jaxgate.observe.measure import Observed
from jaxgate.plugin.confirm import Suspect
from jaxgate.plugin.launching import Comparison
from jaxgate.plugin.options import Settings
from jaxgate.plugin.timing import Rematch, Stopwatch, Timed

_FAILING = frozenset({Status.INVALID, Status.REGRESSED})


@dataclass(slots=True)
class Orphans:
    """Baselines that no test will ever look at again, and files among them that cannot be read."""

    paths: list[Path] = field(default_factory=list)
    unreadable: list[CorruptBaselineError] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.paths or self.unreadable)


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
    ) -> None:
        self.settings = settings
        self.project = project
        self.stderr = stderr
        self.comparison = comparison
        self.store = BaselineStore(settings.baselines)
        self.programs = ProgramStore(settings.baselines)
        self.today = utc_today()
        self.waivers = waivers
        self.idle_waivers: list[tuple[Waiver, str]] = []
        self.stopwatch = Stopwatch(self.programs, settings.budget_s, self.today)
        self.references = ReferenceCache(None if cache is None else cache / "references")
        self.verdicts: list[Verdict] = []
        self.calibrations: list[CaseCalibration] = []
        self.suspects: dict[str, Suspect] = {}
        self.rematches: dict[str, Rematch] = {}
        self.adopted: dict[str, str] = {}
        self.dates: dict[str, str] = {}  # of the stored programs that baselines of this run name
        self.costs: dict[str, Cost] = {}
        self.accused = 0  # tests that failed because the machine is the suspect
        self.only_machine = False  # and for no other reason
        self._tests: dict[str, str] = {}

    def claim_name(self, case: str, test: str) -> None:
        """Take a case's name for a test.

        Raises:
            pytest.fail.Exception: If another test has it: they would share one baseline.
        """
        owner = self._tests.setdefault(case, test)
        if owner != test:
            pytest.fail(
                f"expected one test for the case `{case}`, found two: {owner} and {test}\n"
                "give one of them a name of its own: gate(..., name='family/sentence')",
                pytrace=False,
            )

    def judge(self, case: Case, observed: Observed, *, test: str, progress: Callable[[str], None]) -> Verdict:
        """Judge what was observed against its baseline, with a duel where the program changed; or record it."""
        now = observed.measurement
        if self.comparison is not None:
            verdict = self.comparison.judge(case, now, test=test)
            return apply_waivers(verdict, self._in_force, today=self.today, strict=False)
        try:
            record = self.store.load(now.hardware, case.name)
        except CorruptBaselineError as error:
            if not self.settings.update:
                return replace(judge_invalid(case.name, self._unreadable(error)), hardware=now.hardware)
            record = None
        if record is not None and record.baseline.program.stored:
            self.dates[case.name] = record.baseline.provenance.date
        timed = Timed(record)
        if now.samples is not None and not self.settings.update:
            try:
                timed = self.stopwatch.time(observed, record, progress)
            except InvalidCaseError as error:
                return replace(judge_invalid(case.name, error), hardware=now.hardware)
        strict = self.settings.strict and not self.settings.against  # a new case has no other side
        verdict = judge(
            case.name,
            case.claims,
            now,
            timed.record,
            strict=strict,
            elsewhere=self.store.elsewhere(now.hardware, case.name),
            decision=timed.decision,
            no_duel=timed.why_not,
        )
        if self.settings.update:  # a waived claim is broken all the same, and never recorded
            return self._record(observed, verdict, record, test)
        verdict = apply_waivers(verdict, self._in_force, today=self.today, strict=strict)
        if verdict.status is Status.SLOWER and timed.rematch is not None:
            self.rematches[case.name] = timed.rematch  # of the others none keeps its arguments alive
        return verdict

    @property
    def _in_force(self) -> Sequence[Waiver]:
        """A ratio to the stored baseline says nothing of anything else: it could accept one loss twice."""
        return [w for w in self.waivers if not (self.settings.elsewhere and w.quantity == TIME)]

    def judge_invalid(self, case: Case, error: InvalidCaseError) -> Verdict:
        """The verdict of a case that could not be measured."""
        return judge_invalid(case.name, error)

    def _unreadable(self, error: CorruptBaselineError) -> InvalidCaseError:
        path = self._short(error.path)
        return InvalidCaseError(
            "reading the baseline",
            f"{path} {error.reason}; restore it (git checkout -- {path}) or record it again with --perf-update",
        )

    def _record(self, observed: Observed, verdict: Verdict, record: Record | None, test: str) -> Verdict:
        """Accept a measurement, unless something is wrong that no baseline can make right."""
        now = observed.measurement
        blocking = [f for f in verdict.findings if f.kind in ("claim", "case") and f.status in _FAILING]
        if blocking and not self.settings.as_measured:
            return replace(verdict, fails=True)
        existed = self.store.path(now.hardware, verdict.case).exists()
        made_from = self._provenance
        program = observed.export()
        about = program.record
        if about.stored:  # the program first: a baseline never names a file that is not there
            serves = partial(serves_as, content=program.content)
            about = replace(about, digest=self.programs.save(now.fingerprints.program, program.content, serves))
        self.store.save(Baseline.of(now, case=verdict.case, test=test, provenance=made_from, program=about))
        known = record is not None and not record.borrowed
        status = verdict.status if known else Status.SAME
        return replace(verdict, status=status, fails=False, recorded="refreshed" if existed else "created")

    @property
    def undecided_share(self) -> float:
        """Share of the cases that ended UNDECIDED, or would have without a waiver for something else."""
        left_open = [
            verdict.status is Status.UNDECIDED
            or (verdict.status is Status.WAIVED and verdict.time.status is Status.UNDECIDED)
            for verdict in self.verdicts
        ]
        return sum(left_open) / max(1, len(left_open))

    @property
    def ageing(self) -> Ageing | None:
        """The stored programs of this run's cases that should be recorded again."""
        again = {verdict.case for verdict in self.verdicts if verdict.recorded}
        kept = {case: date for case, date in self.dates.items() if case not in again}
        return ageing(kept, today=self.today)

    @property
    def unfit(self) -> str:
        """Why this run, though nothing in it failed, did not gate; empty if it did."""
        share, most = self.undecided_share, self.settings.max_undecided
        if share > most:
            return f"{share:.0%} of the cases are UNDECIDED, {most:.0%} may be: this machine is unfit to gate"
        nothing = all(verdict.status is Status.NO_BASELINE for verdict in self.verdicts)
        if self.settings.against and self.settings.strict and self.verdicts and nothing:
            return f"nothing could be compared: {self.settings.against[:10]} recorded none of these cases"
        return ""

    @cached_property
    def _provenance(self) -> Provenance:
        """Taken before the first file is written: our own writing must not make the checkout dirty."""
        return provenance(self.project)

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

    def adopt(self) -> None:
        """Keep what the other revision recorded, where this hardware has no baselines yet: ready to be committed."""
        settings = self.settings
        if not settings.against:
            return
        for slug in sorted({verdict.hardware.slug for verdict in self.verdicts if verdict.hardware}):
            why = f"recorded from {settings.against[:10]}, this hardware had none"
            try:
                names = adopt(settings.baselines, settings.stored, slug, serves=serves_as, why=why)
            except OSError as error:  # the comparison was made all the same
                self.adopted[slug] = f"its baselines could not be written: {error}"
                continue
            if names:
                where = self._short(settings.stored / slug)
                self.adopted[slug] = (
                    f"it had no baselines; {len(names)} of that revision are in {where} now: commit them"
                )

    def orphans(self, collected: set[str], roots: list[str]) -> Orphans:
        """Find baselines, for the hardware of this run, whose test is gone.

        Args:
            collected: Node ids of all collected tests, before any was deselected.
            roots: Files and folders that were collected whole, relative to the root folder; a baseline of a
                test outside them is not judged.
        """
        found = Orphans()
        if self.comparison is not None:
            return found  # the stored baselines were not looked at
        files = {test.partition("::")[0] for test in collected}
        for slug in sorted({verdict.hardware.slug for verdict in self.verdicts if verdict.hardware}):
            for path in sorted((self.settings.baselines / slug).glob("*/*.json")):
                try:
                    baseline = self.store.read(path)
                except CorruptBaselineError as error:
                    found.unreadable.append(error)
                    continue
                file = baseline.test.partition("::")[0]
                seen = file in files or not (self.project / file).exists()  # an ignored file tells nothing
                inside = seen and any(is_inside(baseline.test, root) for root in roots)
                ran_as = self._tests_by_node.get(baseline.test)
                renamed = ran_as is not None and baseline.case not in ran_as
                if (inside and baseline.test not in collected) or renamed:
                    found.paths.append(path)
        return found

    @property
    def tests_by_case(self) -> Mapping[str, str]:
        """The cases of this run, each with the test that has it."""
        return self._tests

    @property
    def _tests_by_node(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = {}
        for case, test in self._tests.items():
            names.setdefault(test, set()).add(case)
        return names

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self.project)) if path.is_relative_to(self.project) else str(path)


def is_inside(test: str, root: str) -> bool:
    """Whether a test lies in a file or folder, both relative to the root folder."""
    file = test.partition("::")[0]
    return root in ("", ".") or file == root or file.startswith(f"{root}/")
