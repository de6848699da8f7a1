"""Histories of a case, run by run, for tests of what is made of them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from jaxgate.ext.history.model import HistoryPoint
from jaxgate.model.verdict import BaselineName

FIRST = date(2026, 3, 2)
FOLDER = "cpu-amd-epyc-1-jax-0.12"
CASE = "scan/rnn"
Z = 2.21
"""Of the bounds of a duel."""


def day(number: int) -> str:
    """The day of a run, the first being number 0."""
    return (FIRST + timedelta(days=number)).isoformat()


def commit(number: int) -> str:
    """The commit of a run."""
    return f"{number:x}".rjust(2, "0") * 20


def named(program: str, number: int) -> BaselineName:
    """The baseline that a run recorded."""
    return BaselineName(program=program, folder=FOLDER, commit=commit(number), date=day(number))


def point(
    number: int, program: str, baseline: BaselineName | None, ratio: float | None = None, **changes: Any
) -> HistoryPoint:
    """One run; its ratio's bounds are 1 % away unless they are given, and without a ratio its program is its baseline's."""
    known: dict[str, Any] = {
        "run": str(number),
        "moment": f"{day(number)}T12:00:00+00:00",
        "case": CASE,
        "folder": FOLDER,
        "commit": commit(number),
        "status": "SAME",
        "program": program,
        "baseline": baseline,
        "time_status": "SAME",
        "ratio": ratio,
        "low": None if ratio is None else ratio / 1.01,
        "high": None if ratio is None else ratio * 1.01,
    }
    return HistoryPoint(**(known | changes))


def refreshes(*ratios: float) -> tuple[HistoryPoint, ...]:
    """A baseline that was refreshed once a day, each time by a program of that ratio, and a run of the last one's own."""
    found, baseline = [], named("p0", 0)
    for number, ratio in enumerate(ratios, start=1):
        found.append(point(number, f"p{number}", baseline, ratio, recorded="refreshed"))
        baseline = named(f"p{number}", number)
    return (*found, point(len(ratios) + 1, f"p{len(ratios)}", baseline))


class Past:
    """A store with these runs, or one that cannot be read."""

    def __init__(self, *points: HistoryPoint, error: Exception | None = None) -> None:
        self.found, self.error = points, error
        self.asked: list[tuple[str, str]] = []

    def points(self, case: str, folder: str) -> tuple[HistoryPoint, ...]:
        """The runs of a case."""
        self.asked.append((case, folder))
        if self.error is not None:
            raise self.error
        return tuple(point for point in self.found if (point.case, point.folder) == (case, folder))
