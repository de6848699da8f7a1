"""A run that is over leaves a page to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxgate.engine.run.result_files import PAGE
from jaxgate.model.outcome import RunRecord
from jaxgate.observe.errors import describe

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession


def ended(session: GateSession, record: RunRecord) -> None:
    """Write the page; nothing that goes wrong here changes anything else of the run."""
    evidence = session.evidence
    if not evidence.writes_pages:
        return
    try:
        from jaxgate.ext.page.run_page import Result, run_page  # noqa: PLC0415 - only a run that is over has a page

        shown = Result(run=record, logdir=session.short(evidence.artifacts.root))
        text = run_page([shown])
    except Exception as error:  # noqa: BLE001 - a page is no part of a verdict
        evidence.problems.append(f"{PAGE} could not be made: {describe(error)}")
        return
    evidence.write_page(PAGE, text)
