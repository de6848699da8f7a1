"""What earlier runs stored in the history, for a run that asks for it."""

from __future__ import annotations

from pathlib import Path

from jaxgate.ext.history.model import HISTORY_OFF, HistoryPoint
from jaxgate.settings import Settings


class StoredRuns:
    """What earlier runs stored; opened when it is first asked, so that what is wrong with it is said of a case."""

    def __init__(self, named: str, root: Path) -> None:
        self._named = named
        self._root = root
        self._known: dict[str, dict[str, tuple[HistoryPoint, ...]]] = {}
        self._problem: Exception | None = None

    def points(self, case: str, folder: str) -> tuple[HistoryPoint, ...]:
        """The runs of a case in a folder, oldest first. Raises HistoryError if they cannot be read."""
        if self._problem is not None:  # a file that is locked is waited for once, not by each case
            raise self._problem
        if folder not in self._known:
            try:
                self._known[folder] = self._read(folder)
            except Exception as error:
                self._problem = error
                raise
        return self._known[folder].get(case, ())

    def _read(self, folder: str) -> dict[str, tuple[HistoryPoint, ...]]:
        """All cases of a folder by one query: nearly all of them are asked for."""
        from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place  # noqa: PLC0415 - some Pythons have no sqlite3

        place = find_place(self._named, self._root)
        if place is None:
            raise HistoryError("no history is kept")
        found: dict[str, list[HistoryPoint]] = {}
        for point in HistoryStore(place).points(None, folder):
            found.setdefault(point.case, []).append(point)
        return {case: tuple(points) for case, points in found.items()}


def open_history(settings: Settings, root: Path) -> StoredRuns | None:
    """What earlier runs stored; ``None`` where nothing is kept."""
    return None if settings.history == HISTORY_OFF else StoredRuns(settings.history, root)
