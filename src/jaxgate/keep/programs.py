"""Stored programs: one compressed file for each structural fingerprint, under ``<baselines>/programs/``."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.untrusted import PROGRAM_BYTES, read_bytes, unpack_gzip

FOLDER = "programs"
SUFFIX = ".export.gz"


class ProgramStore:
    """The programs of one project's baselines.

    A file is addressed by the structure of the program, not by its bytes, which change with every renamed
    helper: recording again what did not change touches nothing.
    """

    def __init__(self, baselines: Path) -> None:
        self.folder = baselines / FOLDER

    def path(self, fingerprint: str) -> Path:
        """Where a program lies, whether or not it exists."""
        return self.folder / f"{fingerprint}{SUFFIX}"

    def load(self, fingerprint: str, digest: str | None = None) -> bytes | None:
        """Read a program.

        Args:
            fingerprint: Its structural fingerprint.
            digest: SHA-256 that its content must have, if that is known.

        Returns:
            The content; ``None`` if there is none, it is damaged, or it is another one.
        """
        for path in self._paths(fingerprint):
            content = _read(path)
            if content is not None and digest in (None, _digest(content)):
                return content
        return None

    def save(self, fingerprint: str, content: bytes, serves: Callable[[bytes], bool] = lambda _: True) -> str:
        """Keep a program, unless one of this structure that serves as well is there already.

        Args:
            fingerprint: Its structural fingerprint.
            content: The program.
            serves: Whether a stored program may stand for it; if not, both are kept.

        Returns:
            SHA-256 of the content that stands for the program on disk now.
        """
        for path in self._paths(fingerprint):
            stored = _read(path)
            if stored is not None and serves(stored):
                return _digest(stored)
        digest = _digest(content)
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


def _read(path: Path) -> bytes | None:
    try:
        content = unpack_gzip(read_bytes(path, PROGRAM_BYTES))
    except (OSError, EOFError, zlib.error):
        return None
    return content or None  # an empty file decompresses to nothing, and is no program


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
