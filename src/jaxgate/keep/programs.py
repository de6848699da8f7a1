"""Stored programs: one compressed file for each structural fingerprint, under ``<baselines>/programs/``.

A program is removed only if no baseline of any hardware names it.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.keep.baselines import read_all
from jaxgate.keep.files import PROGRAM_BYTES, RefusedFileError, is_linked, read_bytes, unpack_gzip, write_atomic
from jaxgate.model.baseline import Baseline
from jaxgate.model.program import SUFFIX, UnreachableError

if TYPE_CHECKING:
    from jaxgate.ext.store.shelf import Shelf

FOLDER = "programs"


class ProgramStore:
    """The programs of one project's baselines, in git, and beside it where the project has such a store.

    A file is addressed by the structure of the program, not by its bytes, which change with every renamed
    helper: recording again what did not change touches nothing.
    """

    def __init__(self, baselines: Path, shelf: Shelf | None = None) -> None:
        self.folder = baselines / FOLDER
        self.shelf = shelf
        self._unreachable = ""

    def path(self, fingerprint: str) -> Path:
        """Where a program lies, whether or not it exists."""
        return self.folder / f"{fingerprint}{SUFFIX}"

    def load(self, fingerprint: str, digest: str | None = None) -> bytes | None:
        """Read a program; ``None`` if there is none, it is damaged, or its SHA-256 is not ``digest``."""
        for path in self._paths(fingerprint):
            content = _read(path)
            if content is not None and digest in (None, _digest(content)):
                return content
        self._unreachable = ""
        if digest is None or self.shelf is None:
            return None
        try:
            return _fetched(self.shelf, fingerprint, digest)
        except UnreachableError as error:
            self._unreachable = str(error)
            return None

    def why_missing(self, fingerprint: str) -> str:
        """Why ``load`` gave nothing, and what to do."""
        again = "record the case again with --perf-update"
        if self._unreachable:
            return f"{fingerprint} could not be fetched: {self._unreachable}; run again, or {again}"
        if self.shelf is not None:
            return f"{fingerprint} is missing or damaged, here and in {self.shelf.url}; {again}"
        return f"{self.path(fingerprint).name} is missing or damaged; restore it with git, or {again}"

    def save(self, fingerprint: str, content: bytes, serves: Callable[[bytes], bool] = lambda _: True) -> str:
        """Keep a program, unless one of this structure that serves as well is there already.

        ``serves`` says if a stored program may stand for this one; if not, both are kept.

        Returns:
            SHA-256 of the content that stands for the program now.

        Raises:
            UnreachableError: If the store beside git does not take it; nothing was written.
        """
        for path in self._paths(fingerprint):
            stored = _read(path)
            if stored is not None and serves(stored):
                return _digest(stored)
        digest = _digest(content)
        if self.shelf is not None:
            for other in self.shelf.digests(fingerprint):
                stored = _fetched(self.shelf, fingerprint, other)
                if stored is not None and serves(stored):
                    return other
            self.shelf.put(fingerprint, digest, gzip.compress(content, mtime=0))
            return digest
        taken = _read(self.path(fingerprint)) is not None
        path = self.path(f"{fingerprint}-{digest[:8]}" if taken else fingerprint)
        write_atomic(path, gzip.compress(content, mtime=0))
        return digest

    def files(self) -> list[Path]:
        """All stored programs."""
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    @staticmethod
    def fingerprint_of(path: Path) -> str:
        """The structural fingerprint that a file is addressed by."""
        return path.name.removesuffix(SUFFIX).partition("-")[0]

    @staticmethod
    def digest_of(path: Path) -> str | None:
        """SHA-256 of the content of a file; ``None`` if it is damaged."""
        content = _read(path)
        return None if content is None else _digest(content)

    def _paths(self, fingerprint: str) -> list[Path]:
        return [self.path(fingerprint), *sorted(self.folder.glob(f"{fingerprint}-*{SUFFIX}"))]


def open_programs(baselines: Path, url: str, cache: Path | None = None) -> ProgramStore:
    """The programs of a project's baselines; ``url`` is the store beside git, empty where there is none.

    Raises:
        UsageError: If nothing that is installed knows such an address.
    """
    if not url:
        return ProgramStore(baselines)
    from jaxgate.ext.store.shelf import Shelf  # noqa: PLC0415 - what few projects have

    return ProgramStore(baselines, Shelf(url, cache))


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        return _unpacked(read_bytes(path, PROGRAM_BYTES))
    return None


def _unpacked(packed: bytes) -> bytes | None:
    try:
        return unpack_gzip(packed) or None  # an empty file decompresses to nothing, and is no program
    except (OSError, EOFError, zlib.error):
        return None


def _fetched(shelf: Shelf, fingerprint: str, digest: str) -> bytes | None:
    packed = shelf.get(fingerprint, digest)
    content = None if packed is None else _unpacked(packed)
    return content if content is not None and _digest(content) == digest else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


Named = set[tuple[str, str]]
"""Programs by fingerprint and digest of their content."""


def named_by(baselines: Iterable[Baseline]) -> Named:
    """The programs that baselines name."""
    return {(structure, about.digest) for b in baselines for structure, about in b.programs if about.digest}


def find_unreferenced(root: Path, named: Named, *, only: Collection[str] | None = None) -> list[Path]:
    """The stored programs that none of the baselines names; ``only`` those of some structures.

    A damaged file of a structure that is named stays: git has it whole.
    """
    structures = {fingerprint for fingerprint, _ in named}
    store = ProgramStore(root)

    def is_needed(path: Path) -> bool:
        fingerprint = store.fingerprint_of(path)
        if fingerprint not in structures:
            return False
        digest = store.digest_of(path)
        return digest is None or (fingerprint, digest) in named

    asked = [path for path in store.files() if only is None or store.fingerprint_of(path) in only]
    return [path for path in asked if not is_needed(path)]


def move_to(shelf: Shelf, root: Path, named: Named) -> tuple[list[tuple[Path, int]], list[tuple[str, str]]]:
    """Move the programs that baselines name to a store beside git: each is read back before its file is removed.

    Returns:
        The files that were removed, with their sizes in bytes; the programs that are neither here nor there.

    Raises:
        UnreachableError: If the store does not answer, or gives back something else.
    """
    here, known, missing = ProgramStore(root), shelf.names(), []
    for fingerprint, digest in sorted(named):
        content = here.load(fingerprint, digest)
        if content is not None and (fingerprint, digest) not in known:
            shelf.put(fingerprint, digest, gzip.compress(content, mtime=0))
        if _fetched(shelf, fingerprint, digest) is None:
            if content is not None:
                raise UnreachableError(f"{shelf.url}: it does not give back {fingerprint}, which was written")
            missing.append((fingerprint, digest))
    gone = [path for path in here.files() if (here.fingerprint_of(path), here.digest_of(path)) in named]
    return [remove(path, root) for path in gone], missing


def collect(root: Path, only: Collection[str]) -> list[tuple[Path, int]]:
    """Remove the programs of some structures that no baseline of any hardware names; gives them with their sizes in bytes.

    Raises:
        CorruptBaselineError: If a baseline cannot be read: its program would look unreferenced. Nothing is removed.
    """
    baselines, unreadable = read_all(root)
    if unreadable:
        raise unreadable[0]
    return [remove(path, root) for path in find_unreferenced(root, named_by(baselines.values()), only=only)]


def remove(path: Path, root: Path) -> tuple[Path, int]:
    """Remove one file below the folder of the baselines; gives its path and its size in bytes.

    Raises:
        RefusedFileError: If a link leads from that folder to it: it may be needed by somebody else.
    """
    if is_linked(path, root):
        raise RefusedFileError(f"expected {path} in {root} itself, found it behind a link; remove the link")
    nbytes = path.lstat().st_size
    path.unlink()
    return path, nbytes


def remove_empty_folders(root: Path, path: Path) -> None:
    """Remove the folders above a removed file that are empty now, below the folder of the baselines."""
    folder = path.parent
    while folder != root and folder.is_relative_to(root) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
