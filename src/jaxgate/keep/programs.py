"""Stored programs: one compressed file for each structural fingerprint, under ``<baselines>/programs/``."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

from jaxgate.keep.atomic import write_atomic

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
        try:
            content = gzip.decompress(self.path(fingerprint).read_bytes())
        except (OSError, EOFError, zlib.error):
            return None
        return content if digest in (None, hashlib.sha256(content).hexdigest()) else None

    def save(self, fingerprint: str, content: bytes) -> str:
        """Keep a program, unless one of this structure is there already.

        Returns:
            SHA-256 of the content that is on disk now.
        """
        stored = self.load(fingerprint)
        if stored is None:
            write_atomic(self.path(fingerprint), gzip.compress(content, mtime=0))
            stored = content
        return hashlib.sha256(stored).hexdigest()
