"""What earlier runs stored in the history, for a run that asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.model import HISTORY_OFF, HistoryPoint
from jaxgate.settings import Settings

if TYPE_CHECKING:
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
