"""What of a run's results is remembered."""

from __future__ import annotations

import datetime as dt
import math

from jaxgate.model import CaseRecord, HistoryPoint, HistoryRun, RunRecord, Status, TimeRecord


class HistoryError(Exception):
    """The history cannot be read or written; the text says why in one line."""


def history_run(record: RunRecord) -> HistoryRun:
    """Make a run of its results.

    Raises:
        HistoryError: If an earlier jaxgate wrote them: they do not say which run it was, and when.
    """
    if not record.run or not record.moment:
        raise HistoryError(
            f"expected results with `run` and `moment`, found those of jaxgate {record.jaxgate}, which wrote neither"
        )
    return HistoryRun(
        run=record.run,
        moment=utc(record.moment),
        commit=record.commit,
        dirty=record.dirty,
        jaxgate=record.jaxgate,
        elsewhere=record.elsewhere,
        green=record.green,
        gate_exit=record.gate_exit,
        points=tuple(_point(case, record) for case in record.cases),
    )


def utc(moment: str) -> str:
    """A date and time as ISO 8601 has them, in UTC and to the second, so that texts are in the order of time.

    Raises:
        HistoryError: If it is something else.
    """
    try:
        found = dt.datetime.fromisoformat(moment)
    except ValueError:
        raise HistoryError(f"expected date and time such as 2026-11-25T02:30:00+00:00, found {moment!r}") from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
    return aware.astimezone(dt.UTC).isoformat(timespec="seconds")


def _is_unconfirmed(time: TimeRecord) -> bool:
    """Whether it was a slow-down that fresh processes did not confirm: then there was none, and its ratio says nothing."""
    beyond = time.low is not None and time.margin is not None and time.low > 1 + time.margin
    return beyond and time.status == Status.UNDECIDED


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _point(case: CaseRecord, record: RunRecord) -> HistoryPoint:
    figures, time = case.figures, case.time
    low, high, ratio = (None if _is_unconfirmed(time) else _finite(one) for one in (time.low, time.high, time.ratio))
    return HistoryPoint(
        run=record.run,
        moment=utc(record.moment),
        commit=record.commit,
        case=case.case,
        folder=case.folder,
        status=case.status,
        fails=case.fails,
        recorded=case.recorded,
        elsewhere=record.elsewhere,
        program="" if figures is None else figures.program,
        baseline=None if figures is None else figures.baseline,
        time_status=time.status,
        ratio=ratio,
        low=low,
        high=high,
        figures={} if figures is None else figures.now,
        environment={} if figures is None else figures.environment,
    )
