"""What is remembered between runs of references, and of duels with them. It may be deleted: that costs time only."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.npz import pack, unpack
from jaxgate.keep.strict import adapter_of
from jaxgate.keep.untrusted import ARRAYS_BYTES, read_bytes
from jaxgate.model import Duel

if TYPE_CHECKING:
    import numpy as np

MAX_FILES, MAX_BYTES = 4096, 1024**3
"""Entries kept, and their size together; the oldest go first. A reference that changes leaves its old entry behind, and
each jax has entries of its own: this suite alone takes some 300 for each release, 120 MB of them results."""


class ReferenceCache:
    """A folder with one ``.npz`` file per reference: its arrays, and its numbers as JSON text beside them.

    Without a folder (pytest's cache is switched off) nothing is remembered.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def load(self, key: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]] | None:
        """Give back what was saved under a key; ``None`` if there is nothing or it cannot be read."""
        if self.folder is None:
            return None
        try:
            content = read_bytes(
                self.folder / f"{key}.npz", ARRAYS_BYTES
            )  # NumPy leaves a file that it cannot read open
            outputs, numbers = unpack(content)
        except Exception:  # noqa: BLE001 - a damaged entry raises almost anything; it costs time only
            return None
        return numbers, outputs

    def save(self, key: str, facts: dict[str, Any], outputs: list[np.ndarray[Any, Any]]) -> None:
        """Keep numbers and arrays under a key, and forget the oldest entries beyond a limit."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):  # a full or read-only disk costs time only
            write_atomic(self.folder / f"{key}.npz", pack(outputs, facts))
            _forget_oldest(self.folder)


def _forget_oldest(folder: Path) -> None:
    """Keep the youngest entries, as many as both limits let; behind a link nothing is this project's to remove."""
    if folder.is_symlink() or folder.parent.is_symlink():
        return
    files = nbytes = 0
    for written, size, path in sorted(map(_entry, folder.glob("*.npz")), reverse=True):
        files, nbytes = files + 1, nbytes + size
        if written and (files > MAX_FILES or nbytes > MAX_BYTES):
            path.unlink(missing_ok=True)


def _entry(path: Path) -> tuple[float, int, Path]:
    """When it was written, and its size."""
    try:
        found = path.stat()
    except OSError:
        return 0.0, 0, path  # another run has just forgotten it
    return found.st_mtime, found.st_size, path


class DuelCache:
    """Raw times by the hash of everything that they depend on, beside what is remembered of references."""

    def __init__(self, entries: ReferenceCache) -> None:
        self._entries = entries

    def load(self, key: str) -> Duel | None:
        """Give back what was saved under a key; ``None`` if there is nothing or it cannot be read."""
        found = self._entries.load(key)
        if found is None:
            return None
        try:
            return adapter_of(Duel).validate_json(json.dumps(found[0]))
        except ValueError:
            return None

    def save(self, key: str, duel: Duel) -> None:
        """Keep a duel under a key."""
        self._entries.save(key, adapter_of(Duel).dump_python(duel, mode="json"), [])
