"""A run that is over joins the history. Whatever goes wrong with that is one line, and changes no verdict."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.keep import parse_results
from jaxgate.model import HISTORY_OFF

if TYPE_CHECKING:
    from jaxgate.engine.session import GateSession


def remember(session: GateSession, results: str, file: Path) -> None:
    """Add a run to the history, if it judged or recorded anything.

    Args:
        session: The run, over.
        results: What its ``results.json`` says.
        file: Where that was written.
    """
    named = session.settings.history
    if named == HISTORY_OFF:
        return
    try:
        record = parse_results(json.loads(results))
        if not record.cases:
            return
        from jaxgate.keep.history import HistoryStore, find_place  # noqa: PLC0415 - imports SQLAlchemy

        place = find_place(named, session.project)
        if place is not None:
            with HistoryStore(place) as store:
                store.append(record)
    except Exception as error:  # noqa: BLE001 - the run was judged, and its pages are written
        later = f"; add it later: jaxgate history --import {shlex.quote(session.short(file))}" if file.is_file() else ""
        session.evidence.problems.append(f"the run was not added to the history: {error}{later}")
