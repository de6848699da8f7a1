"""A case at one revision of a range: recorded there, and compared with the good side, by runs of pytest in other processes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jaxgate.ext.bisect.ranges import Range
from jaxgate.ext.upgrade.environment import OPTION as AGAINST
from jaxgate.ext.upgrade.launches import judge_environment
from jaxgate.ext.upgrade.notes import read_notes
from jaxgate.keep.baselines import read_all
from jaxgate.keep.machine import HELD, Machine
from jaxgate.model.baseline import Baseline, Launches
from jaxgate.model.decision import Status
from jaxgate.model.outcome import UsageError
from jaxgate.model.verdict import Finding
from jaxgate.model.workload import Tolerance
from jaxgate.processes.child import run_child
from jaxgate.processes.pytest_child import RecordSelection, Selection, Side, judge_test, record_selection
from jaxgate.report.text import explain
from jaxgate.settings import AS_MEASURED, NOTES_INTO

STEP_TIMEOUT_S = 900.0
"""A revision whose test takes longer is skipped: one that hangs must not hold up the search for ever."""
Judge = Callable[[Side, str, Sequence[str], Path], Mapping[str, Any]]
"""Judges a test in a process of its own; gives what its ``results.json`` says."""

_NOTES = "notes.jsonl"
_BOUNDED = partial(run_child, timeout_s=STEP_TIMEOUT_S)
_RECORD: RecordSelection = partial(record_selection, run=_BOUNDED)
_JUDGE: Judge = partial(judge_test, run=_BOUNDED)


class NotMeasuredError(Exception):
    """A revision cannot be built, or the test fails there: nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A revision against the good side, as a run of pytest judged it."""

    findings: tuple[Finding, ...]  # what is not the same, worst first
    time: Status  # what is known of its time
    ratio: float | None  # to the good side, where it was timed
    reason: str  # why that is all that is known
    text: str  # the red text; empty where nothing differs
    sees: float | None = None  # the smallest slow-down that a duel would have shown, where one was run


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A case and its test, whose revisions are measured."""

    case: str  # its name; empty where only the test was named, and says which case it has
    test: str  # pytest node id, relative to the root folder of the tests
    names: frozenset[str]  # all names that the case may have

    @property
    def file(self) -> Path:
        """The file of the test, relative to the root folder of the tests."""
        return Path(self.test.partition("::")[0])


class Revisions:
    """The revisions of one range, each measured once.

    ``waits`` is told once for whom a run waits, where another one has the machine; time that it waits does not count.

    Attributes:
        copied: Whether today's tests lie over each of them.
    """

    def __init__(
        self,
        subject: Subject,
        within: Range,
        folder: Path,
        *,
        waits: Callable[[str], None],
        record: RecordSelection = _RECORD,
        judge: Judge = _JUDGE,
    ) -> None:
        self._machine, self._waits = Machine(), waits
        self._machine.about = f"jaxgate bisect of {subject.test}"
        self._subject, self._range, self._folder = subject, within, folder
        self._record, self._judge = record, judge
        self.copied = False

    def measure(self, revision: str) -> Baseline:
        """What the test records of a revision; read back where it was recorded before.

        Raises:
            NotMeasuredError: If it records nothing of this case.
            UsageError: If the test has several cases, and none was named.
        """
        into = self._into(revision)
        found = self._read(into)
        if found is not None:
            return found
        aside = into.with_suffix(".part")
        for folder in (aside, into):
            shutil.rmtree(folder, ignore_errors=True)
        aside.mkdir(parents=True)
        with self._opened(revision) as side, self._machine.hold(self._waits):
            failed = self._record(_recording(side, aside / _NOTES), Selection((self._subject.test,), "", ""), aside)
        found = self._read(aside)
        if found is None:
            raise NotMeasuredError("; ".join(failed.values()) or self._nothing(aside))
        aside.rename(into)
        return found

    def known(self, revision: str) -> Baseline | None:
        """What a revision recorded, if it did."""
        return self._read(self._into(revision))

    def compare(self, revision: str, *, timed: bool) -> Compared:
        """Hold a revision against the good side.

        Raises:
            NotMeasuredError: If the comparison comes to no result.
        """
        good, here = self.known(self._range.good), self.known(revision)
        if good is None or here is None:
            raise NotMeasuredError("it was not recorded")
        against = self._range.against(self._into(self._range.good), timed=timed)
        if not against:
            note = read_notes(self._into(revision) / _NOTES).cases.get(here.case)
            return self._recordings(here, good, () if note is None else note.tolerances)
        with self._opened(revision) as side, self._machine.hold(self._waits, alone=timed):
            results = self._judge(_unhindered(side), self._subject.test, against, self._folder)
        found = [one for one in results.get("cases", ()) if one["case"] == good.case]
        if not found:
            raise NotMeasuredError(f"nothing was judged of {good.case}")
        return _compared(found[0], confirms=not any(one.startswith(AGAINST) for one in against))

    def _recordings(self, here: Baseline, good: Baseline, tolerances: Sequence[Tolerance]) -> Compared:
        launches = Launches(here=(here,), there=(good,), why_not="")
        other = "==".join(self._range.describe(self._range.good).split())
        verdict = judge_environment(here.case, (), here.as_measured(), launches, other=other, tolerances=tolerances)
        return Compared(
            findings=tuple(finding for finding in verdict.findings if finding.status is not Status.SAME),
            time=verdict.time.status,
            ratio=None,
            reason=verdict.time.reason,
            text=explain(verdict, test=self._subject.test, elsewhere=f"--perf-against {other}"),
        )

    @contextmanager
    def _opened(self, revision: str) -> Iterator[Side]:
        """An open revision; whatever keeps tests from running in it is one kind of error."""
        try:
            with self._range.opened(revision, copied=self.copied) as side:
                yield side
        except (UsageError, OSError) as error:
            raise NotMeasuredError(_reason(str(error))) from None

    def _into(self, revision: str) -> Path:
        """Where a revision's recording lies for later questions; today's tests record apart from its own."""
        return self._folder / ("recorded-by-todays-tests" if self.copied else "recorded") / revision

    def _read(self, folder: Path) -> Baseline | None:
        """The baseline of the case among those of a recording."""
        every = [*read_all(folder)[0].values()]
        if not self._subject.case:
            if len(every) > 1:
                names = ", ".join(sorted(one.case for one in every))
                raise UsageError(f"{self._subject.test} has several cases, name one before it: {names}")
            return every[0] if every else None
        alone = every if len(every) == 1 else []
        named = [one for one in every if one.case == self._subject.case]
        return next(iter([*named, *(one for one in alone if one.case in self._subject.names)]), None)

    def _nothing(self, folder: Path) -> str:
        others = sorted(one.case for one in read_all(folder)[0].values())
        return (
            f"it records {', '.join(others)}, not {self._subject.case}"
            if others
            else "the test is not there, or gates nothing"
        )


def _recording(side: Side, notes: Path) -> Side:
    """A side that only records: without a clock, and also what breaks a claim; what no baseline keeps goes into the notes."""
    variables = {AS_MEASURED: "1", NOTES_INTO: str(notes)}
    return replace(_unhindered(side, variables), arguments=(*side.arguments, "--benchmark-disable"))


def _unhindered(side: Side, also: Mapping[str, str] = MappingProxyType({})) -> Side:
    """A side that does not wait for the machine, which this process holds."""
    return replace(side, environment={**side.environment, HELD: str(os.getpid()), **also})


def _reason(text: str) -> str:
    """One line of a message: of what pytest printed, the error that it quotes, else its last word."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    quoted = [line.removeprefix("E ").strip() for line in lines if line.startswith("E ")]
    return [*lines, *quoted][-1] if lines else "no reason was given"


def _compared(case: Mapping[str, Any], *, confirms: bool) -> Compared:
    """What a run says of a case, by its entry in ``results.json``.

    With ``confirms`` fresh processes must have confirmed that it is slower; launches are fresh processes themselves.
    """
    keys = ("kind", "name", "now", "against", "allowed", "recorded", "detail")
    findings = (Finding(status=Status(one["status"]), **{key: one[key] for key in keys}) for one in case["findings"])
    time = case["time"]
    status, reason, sees = Status(time["status"]), time["reason"], time["sees"]
    if confirms and status is Status.SLOWER and not time["confirmed"]:  # the case is red without it, so nobody asked
        status, reason, sees = Status.UNDECIDED, f"{reason}, not confirmed by fresh processes", None
    return Compared(
        findings=tuple(findings), time=status, ratio=time["ratio"], reason=reason, text=case["text"], sees=sees
    )
