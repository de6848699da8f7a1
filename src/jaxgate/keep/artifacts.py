"""The folder of a run's bundles: what TensorBoard opens, and what CI uploads. Emptied by each run, but for the history."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from jaxgate.keep.files import RefusedFileError, read_bytes, read_json, write_atomic
from jaxgate.keep.machine import lock_of

MARKER = ".jaxgate-artifacts"
"""Says that the folder is jaxgate's to empty; its number counts the runs."""
IGNORED = ".gitignore"
"""Keeps the folder out of git, whatever the project's own rules say."""
HISTORY = "history"
"""Scalars of every run, for TensorBoard; stays."""
CLAIMS = ".profiled"
"""One empty file for each case that was profiled: several processes count them together."""
PAGE_MARK = '<meta name="generator" content="jaxgate">'
"""Stands at the beginning of every page, which may be written over."""
RESULTS_PAGE_BYTES = 64 * 1024**2
_HEAD_BYTES = 1024


class ForeignFolderError(Exception):
    """The folder holds what no run of jaxgate wrote; the text says what to do."""


class Artifacts:
    """The bundles of one run.

    ``run`` names a run of several processes, of which the first empties the folder; empty for one process.
    """

    def __init__(self, root: Path, run: str = "") -> None:
        self.root = root
        self._run = run
        self._before = 0
        self._number = 0

    def begin(self) -> None:
        """Remove the bundles of the last run.

        Raises:
            ForeignFolderError: If somebody else's files are there: nothing is touched.
            OSError: If they cannot be removed.
        """
        if not self._run:
            self._empty()
            return
        with lock_of(self.root):
            marker = _read(self.root / MARKER)
            if marker.get("run") == self._run:
                self._before = _count(marker)
            else:
                self._empty()
                self._mark(self._before)

    def join(self) -> None:
        """Write beside what the last run left; what it raises is that of ``begin``."""
        if (self.root / MARKER).is_file():
            self._before = _count(_read(self.root / MARKER))
        elif self.root.exists() and any(path.name != HISTORY for path in self.root.iterdir()):
            raise ForeignFolderError(
                f"{self.root.name} holds files that jaxgate did not write, so no bundle was; choose another folder "
                "with --perf-artifacts"
            )

    def _empty(self) -> None:
        self.join()
        if not (self.root / MARKER).is_file():
            return
        for path in self.root.iterdir():
            if path.name == HISTORY and not path.is_symlink():
                for inner in filter(Path.is_dir, path.iterdir()):  # bundles of a family of that name
                    _remove(inner)
            elif path.name not in (MARKER, IGNORED):
                _remove(path)

    def bundle(self, case: str) -> Path:
        """The folder of a case's bundle."""
        folder = self._made().joinpath(*case.split("/"))
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write(self, case: str, name: str, text: str) -> None:
        """Write one file of a bundle."""
        write_atomic(self.bundle(case) / name, text.encode())

    def write_page(self, name: str, text: str) -> None:
        """Write a file about the run as a whole."""
        write_atomic(self._made() / name, text.encode())

    def claims(self, kind: str) -> int:
        """How many cases of a kind were profiled, by all processes of this run."""
        return sum(1 for _ in (self.root / CLAIMS).glob(f"{kind}-*"))

    def claim(self, kind: str, case: str) -> None:
        """Count a case as profiled."""
        name = hashlib.sha256(case.encode()).hexdigest()[:16]
        write_atomic(self._made() / CLAIMS / f"{kind}-{name}", b"")

    @property
    def history(self) -> Path:
        """The folder of the scalars."""
        return self.root / HISTORY

    def number(self) -> int:
        """Number of this run among those that left their scalars here, counted from 1."""
        if not self._number:
            self._number = self._before + 1
            self._mark(self._number)
        return self._number

    def _made(self) -> Path:
        """The folder, which is made with the first file."""
        if not (self.root / MARKER).exists():
            self._mark(self._before)
        return self.root

    def _mark(self, runs: int) -> None:
        about = {"runs": runs, "run": self._run} if self._run else {"runs": runs}
        self.root.mkdir(parents=True, exist_ok=True)
        write_atomic(self.root / MARKER, json.dumps(about).encode())
        if not (self.root / IGNORED).exists():
            write_atomic(self.root / IGNORED, b"*\n")


def refuse_foreign(path: Path, mark: str, what: str) -> None:
    """Refuse to write over a file that is not ours: it must not be there yet, or begin with ``mark``. A link is never ours.

    Raises:
        RefusedFileError: If it is anything else.
        OSError: If it cannot be read.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink() or mark.encode() not in read_bytes(path, limit=RESULTS_PAGE_BYTES)[:_HEAD_BYTES]:
        found = "a link" if path.is_symlink() else "a file that jaxgate did not write"
        raise RefusedFileError(f"expected {what} or no file yet, found {found}; name another file, or remove this one")


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it; another run may be removing it, too."""
    while path.exists() or path.is_symlink():
        try:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except FileNotFoundError:
            continue


def _read(marker: Path) -> dict[str, Any]:
    try:
        found = read_json(marker)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _count(marker: dict[str, Any]) -> int:
    try:
        return int(marker["runs"])
    except (ValueError, KeyError, TypeError):
        return 0  # a damaged count numbers the runs anew
