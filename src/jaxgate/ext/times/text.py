"""What a recording of times says: one line for each case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from jaxgate.report.printable import headed
from jaxgate.report.units import show


class RecordingOutcome(StrEnum):
    """What came of a case; last, what needs a person."""

    RECORDED = "RECORDED"
    NOISY = "NOISY"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRow:
    """One case of a recording."""

    outcome: RecordingOutcome  # what came of it
    case: str  # `family/sentence`; a test where the case is unknown
    run_ns: float | None  # median time of a call in the last session
    text: str  # what it means now, or why it was refused


def recording_table(rows: Sequence[RecordingRow]) -> list[tuple[RecordingOutcome, str, str]]:
    """One line for each case, aligned: its outcome, the padded word to colour, and the rest."""
    cells = [(row.outcome, row.case, "" if row.run_ns is None else show("run_ns", row.run_ns)) for row in rows]
    lines = headed(cells, right={2}, texts=[row.text for row in rows])
    return [(row.outcome, *line) for row, line in zip(rows, lines, strict=True)]
