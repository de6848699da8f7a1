"""A run that is over joins the history."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from jaxgate.engine.run.result_files import RESULTS
from jaxgate.ext.history.model import HISTORY_OFF
from jaxgate.model.outcome import RunRecord

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession


def ended(session: GateSession, record: RunRecord) -> None:
    """Add a run to the history, if it judged or recorded anything. Whatever goes wrong is one line, and changes no verdict."""
    named = session.settings.history
    if named == HISTORY_OFF or not record.cases:
        return
    try:
        from jaxgate.ext.history.store import HistoryStore, find_place  # noqa: PLC0415 - some Pythons have no sqlite3

        place = find_place(named, session.project)
        if place is not None:
            HistoryStore(place).append(record)
    except Exception as error:  # noqa: BLE001 - the run was judged, and its pages are written
        file = session.evidence.artifacts.root / RESULTS
        later = f"; add it later: jaxgate history --import {shlex.quote(session.short(file))}" if file.is_file() else ""
        session.evidence.problems.append(f"the run was not added to the history: {error}{later}")
