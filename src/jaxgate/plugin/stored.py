"""Stored times in a run that judges: on registered hardware, where no duel can answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxgate.judge.stored import (
    StoredLimit,
    decide_stored,
    may_answer,
    only_environment_changed,
    stored_limit,
)
from jaxgate.keep.baselines import CorruptBaselineError
from jaxgate.keep.times import TimesStore
from jaxgate.model import Baseline, BrokenDuelError, Claim, InvalidCaseError, Measurement, Record
from jaxgate.observe.quiet import look
from jaxgate.plugin.again import measure_again
from jaxgate.plugin.confirm import Launch
from jaxgate.plugin.timing import Timed

OPTION = "--perf-record-times"
RECORD = f"record them: {OPTION} 10"
ITSELF = "a duel of a program with itself sees nothing of that"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """What it takes to measure a case again in a fresh process, and to judge that by the stored limit.

    Attributes:
        project: Root folder of the tests.
        test: pytest node id.
        case: Name of the case.
        now: What this process measured.
        accepted: The baseline.
        limit: What the stored sessions allow.
        claim: None: it is about the baseline, not about the reference.
    """

    project: Path
    test: str
    case: str
    now: Measurement
    accepted: Baseline
    limit: StoredLimit
    claim: Claim | None = None

    def launch(self) -> Launch:
        """Run the test in a fresh process, on a machine that is still quiet."""
        seen = look(self.now.hardware.platform, after_work=True, holds_device=True)
        if seen.objections:
            problem = f"the machine is not quiet: {'; '.join(seen.objections)}"
            return Launch(None, None, problem, has_control=False, blames_machine=True)
        found = measure_again(self.project, self.test, self.case, self.now.hardware)
        if isinstance(found, str):
            return self._nothing(found)
        ours, theirs = self.now, found
        same = ours.fingerprints == theirs.fingerprints and ours.environment == theirs.environment
        if not same or theirs.samples.contract != self.accepted.samples.contract:
            return self._nothing("a fresh process ran another program, or in another environment")
        try:
            decision = decide_stored(self.limit, theirs.samples.run_ns)
        except BrokenDuelError as error:
            return self._nothing(f"a fresh process gave nothing usable: {error}")
        return Launch(decision, None, has_control=False)

    def _nothing(self, problem: str) -> Launch:
        return Launch(None, None, problem, has_control=False)


class StoredClock:
    """Answers with stored times where the hardware is registered and a duel cannot.

    Args:
        quiet: Slugs of the registered hardware.
        baselines: Folder of the baselines.
        project: Root folder of the tests.
    """

    def __init__(self, quiet: Sequence[str], baselines: Path, project: Path) -> None:
        self._quiet = frozenset(quiet)
        self._times = TimesStore(baselines)
        self._project = project

    def time(self, case: str, test: str, now: Measurement, record: Record | None, timed: Timed) -> Timed:
        """Replace what a duel could not say.

        Args:
            case: Name of the case.
            test: pytest node id.
            now: Today's measurement.
            record: The baseline.
            timed: What came of the attempt to duel.

        Returns:
            What the stored times say, or why they say nothing; what came in where they have no say.

        Raises:
            InvalidCaseError: If their file cannot be trusted, or today's time is none.
        """
        if record is None or now.processes > 1 or now.hardware.slug not in self._quiet:
            return timed
        if not may_answer(now, record, duelled=timed.decision is not None):
            return timed
        only_environment = only_environment_changed(now, record.baseline)
        no_duel = ITSELF if only_environment else timed.why_not
        try:
            times = self._times.load(now.hardware, case)
        except CorruptBaselineError as error:
            raise InvalidCaseError("reading the stored times", _mend(error, self._project)) from None
        counted = [session for session in times.sessions if session.is_of(record.baseline)]
        limit = stored_limit(counted)
        if limit.why_not:
            others = len(times.sessions) - len(counted)
            dropped = f" ({others} of another baseline)" if others else ""
            mend = "" if limit.is_noisy else f"; {RECORD}"
            why_not = f"{no_duel}; stored times: {limit.why_not}{dropped}{mend}"
            return Timed(timed.record, why_not=why_not)
        try:
            decision = decide_stored(limit, now.samples.run_ns if now.samples else 0)
        except BrokenDuelError as error:
            raise InvalidCaseError("timing against stored times", str(error)) from None
        busy = sum(bool(session.objections) for session in counted)
        if busy:
            told = f"{busy} of {len(counted)} sessions were recorded on a machine that was not quiet"
            decision = replace(decision, reason=f"{decision.reason}; {told}")
        if not only_environment:
            decision = replace(decision, reason=f"{decision.reason}; {no_duel}")
        repeat = Repeat(project=self._project, test=test, case=case, now=now, accepted=record.baseline, limit=limit)
        return Timed(timed.record, decision=decision, rematch=repeat)


def _mend(error: CorruptBaselineError, project: Path) -> str:
    path = error.path.relative_to(project) if error.path.is_relative_to(project) else error.path
    return f"{path} {error.reason}; restore it (git checkout -- {path}), or remove it and {RECORD}"
