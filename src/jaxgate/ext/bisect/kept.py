"""Searches of a range, a folder each in the user's cache: how far each question came, and what was recorded for all of them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from jaxgate.ext.bisect.model import BISECTION_SCHEMA, AskedSide, Bisection
from jaxgate.keep.files import is_linked, read_bytes
from jaxgate.keep.strict import read_strict

MOST_AGE_S = 30 * 24 * 3600.0
"""A search that nobody went on with for a month is forgotten by the next one."""
_QUESTIONS = "questions"


def search_folder(cache: Path, asked: Sequence[str], files: Sequence[Path]) -> Path:
    """The folder of one range of one test; it is another one where the content of a file has changed since."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (*(word.encode() for word in asked), *(read_bytes(file) for file in files)):
        digest.update(len(part).to_bytes(8, "big") + part)
    return cache / "bisect" / digest.hexdigest()


def question_file(folder: Path, fact: str, asked: AskedSide) -> Path:
    """The file that says how far a question came."""
    return folder / _QUESTIONS / f"{fact or 'first'}-{asked}.json"


def read_bisection(path: Path) -> Bisection | None:
    """How far a question came; ``None`` if it has not begun.

    Raises:
        CorruptBaselineError: If the file cannot be trusted.
    """
    return read_strict(path, Bisection, schema=BISECTION_SCHEMA) if os.path.lexists(path) else None


def forget_old(cache: Path, now_s: float) -> None:
    """Remove the searches of which no question went on for long; ``now_s`` counts from 1970."""
    for folder in (cache / "bisect").glob("*"):
        written = [path.stat().st_mtime for path in (folder, *folder.glob(f"{_QUESTIONS}/*.json"))]
        if now_s - max(written) > MOST_AGE_S:
            forget(folder)


def copy_files(files: Sequence[Path], project: Path, into: Path) -> None:
    """Lay files, relative to both folders, of one project over another; a link there is replaced, not followed.

    Raises:
        OSError: If one cannot be written, or its folder is a link there.
    """
    for file in files:
        target = into / file
        if is_linked(target, into):
            raise OSError(f"{file.parent} is a link there")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(project / file, target)


def forget(folder: Path) -> int:
    """Remove a folder of the cache; gives how many bytes it had."""
    size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) if folder.is_dir() else 0
    shutil.rmtree(folder, ignore_errors=True)
    return size
