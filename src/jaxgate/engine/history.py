"""The history of runs, as a run uses it: what earlier ones stored is read, and a run that is over joins them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.model import HISTORY_OFF, HistoryPoint, RunRecord
from jaxgate.settings import Settings

if TYPE_CHECKING:
    from jaxgate.engine.session import GateSession
    from jaxgate.keep.history import HistoryStore


class StoredRuns:
    """What earlier runs stored; opened when it is first asked, so that what is wrong with it is said of a case.

    Args:
        named: A path or the URL of a database.
        root: What a path is relative to.
    """

    def __init__(self, named: str, root: Path) -> None:
        self._named = named
        self._root = root
        self._store: HistoryStore | None = None

    def points(self, case: str, folder: str) -> tuple[HistoryPoint, ...]:
        """The runs of a case in a folder, oldest first.

        Raises:
            HistoryError: If they cannot be read.
        """
        from jaxgate.keep.history import HistoryError, HistoryStore, find_place  # noqa: PLC0415 - imports SQLAlchemy

        if self._store is None:
            place = find_place(self._named, self._root)
            if place is None:
                raise HistoryError("no history is kept")
            self._store = HistoryStore(place)
        return self._store.points(case, folder)


def open_history(settings: Settings, root: Path) -> StoredRuns | None:
    """What earlier runs stored; ``None`` where nothing is kept."""
    return None if settings.history == HISTORY_OFF else StoredRuns(settings.history, root)


def remember(session: GateSession, record: RunRecord, file: Path) -> None:
    """Add a run to the history, if it judged or recorded anything. Whatever goes wrong is one line, and changes no verdict.

    Args:
        session: The run, over.
        record: What its ``results.json`` says.
        file: Where that was written.
    """
    named = session.settings.history
    if named == HISTORY_OFF or not record.cases:
        return
    try:
        from jaxgate.keep.history import HistoryStore, find_place  # noqa: PLC0415 - imports SQLAlchemy

        place = find_place(named, session.project)
        if place is not None:
            with HistoryStore(place) as store:
                store.append(record)
    except Exception as error:  # noqa: BLE001 - the run was judged, and its pages are written
        later = f"; add it later: jaxgate history --import {shlex.quote(session.short(file))}" if file.is_file() else ""
        session.evidence.problems.append(f"the run was not added to the history: {error}{later}")
