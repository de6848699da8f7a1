"""A run that is over leaves its alerts beside its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxgate.ext.alerts.text import code_quality, sarif
from jaxgate.model.outcome import RunRecord

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

SARIF, CODE_QUALITY = "results.sarif", "codequality.json"


def ended(session: GateSession, record: RunRecord) -> None:
    """Write both files, also where nothing is red: an empty report takes old alerts away."""
    session.evidence.write_page(SARIF, sarif(record))
    session.evidence.write_page(CODE_QUALITY, code_quality(record))
