"""What a recording of times says: one line for each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from jaxgate.report.units import show


class Outcome(StrEnum):
    """What came of a case; the one that needs a person last."""

    RECORDED = "RECORDED"
    NOISY = "NOISY"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case of a recording.

    Attributes:
        outcome: What came of it.
        case: ``family/sentence``; a test where the case is unknown.
        run_ns: Median time of a call in the last session.
        text: What it means now, or why it was refused.
    """

    outcome: Outcome
    case: str
    run_ns: float | None
    text: str


def table(rows: Sequence[Row]) -> list[tuple[Outcome, str, str]]:
    """One line for each case, aligned: its outcome, the padded word to colour, and the rest."""
    times = ["" if row.run_ns is None else show("run_ns", row.run_ns) for row in rows]
    word_width = max((len(row.outcome) for row in rows), default=0)
    name_width = max((len(row.case) for row in rows), default=0)
    time_width = max(map(len, times), default=0)
    return [
        (row.outcome, f"{row.outcome:<{word_width}}", f"  {row.case:<{name_width}}  {time:>{time_width}}  {row.text}")
        for row, time in zip(rows, times, strict=True)
    ]


def count_rows(rows: Sequence[Row]) -> str:
    """How many cases have each outcome."""
    counts = Counter(row.outcome for row in rows)
    cases = f"{len(rows)} case{'' if len(rows) == 1 else 's'}"
    return f"{cases}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
