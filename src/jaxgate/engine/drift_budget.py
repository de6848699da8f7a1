"""The drift of each case of a run, held against the budget that was set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Protocol

from jaxgate.judge import conclude, judge_drift, since_accepted, unreadable
from jaxgate.model import DriftStart, Finding, HistoryPoint, Status, Tolerance, Verdict

NO_STORE = "no history is kept"


class PastPoints(Protocol):
    """What earlier runs stored."""

    def points(self, case: str, folder: str) -> tuple[HistoryPoint, ...]:
        """The runs of a case in a folder, oldest first.

        Raises:
            Exception: If they cannot be read; the text says why, and what to do.
        """


class DriftBudget:
    """Adds to a verdict what its case lost since its first run.

    Args:
        budget: Share that may be lost; ``None`` adds nothing and reads nothing.
        past: What earlier runs stored; ``None`` where nothing is kept.
        starts: Drifts that were accepted.
        today: The UTC date.
        moment: Date and time, UTC.
        commit: What is checked out.
    """

    def __init__(
        self,
        budget: float | None,
        past: PastPoints | None,
        starts: Iterable[DriftStart],
        *,
        today: date,
        moment: Callable[[], str],
        commit: Callable[[], str | None],
    ) -> None:
        self._budget = budget
        self._past = past
        self._starts = tuple(starts)
        self._today = today
        self._moment = moment
        self._commit = commit

    def judge(self, verdict: Verdict, folder: str, tolerances: Iterable[Tolerance], *, strict: bool) -> Verdict:
        """The verdict with what its drift adds.

        Args:
            verdict: That of this run alone, held against a stored baseline.
            folder: Where that baseline lies: hardware and release line of jax.
            tolerances: The workload's own.
            strict: Whether a missing or stale baseline fails.
        """
        if self._budget is None or verdict.figures is None or verdict.figures.baseline is None:
            return verdict
        return conclude(verdict, [*verdict.findings, *self._findings(verdict, folder, tolerances)], strict=strict)

    def _findings(self, verdict: Verdict, folder: str, tolerances: Iterable[Tolerance]) -> list[Finding]:
        assert self._budget is not None  # the caller looked
        if self._past is None:
            return [unreadable(NO_STORE)]
        try:
            past = self._past.points(verdict.case, folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, a budget that cannot be checked is not kept
            return [unreadable(str(error) or type(error).__name__)]
        counted = since_accepted(past, verdict.case, self._starts, self._today)
        today = point_of(verdict, folder, moment=self._moment(), commit=self._commit())
        timed = verdict.run_ns is not None and not (verdict.hardware and verdict.hardware.is_virtual)
        return judge_drift((*counted, today), self._budget, tolerances, timed=timed)


def point_of(verdict: Verdict, folder: str, *, moment: str, commit: str | None) -> HistoryPoint:
    """Today's run as a point of the history.

    The ratio of a slow-down that fresh processes have still to confirm does not count yet: if they do, the case fails for that,
    or a waiver covers it, and it counts from the next run on; if they do not, it was none.
    """
    figures, decision = verdict.figures, verdict.time.decision
    counts = decision is not None and verdict.time.status is not Status.SLOWER
    assert figures is not None  # the caller looked
    return HistoryPoint(
        run="",
        moment=moment,
        commit=commit,
        case=verdict.case,
        folder=folder,
        status=str(verdict.status),
        program=figures.program,
        baseline=figures.baseline,
        time_status=str(verdict.time.status),
        ratio=decision.ratio if decision is not None and counts else None,
        low=decision.low if decision is not None and counts else None,
        high=decision.high if decision is not None and counts else None,
        figures=figures.now,
        environment=figures.environment,
    )
