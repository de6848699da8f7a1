"""The baselines that a revision of git has stored, in a folder that is removed afterwards."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from jaxgate.keep.git import TIMEOUT_S, git_command, run_git
from jaxgate.model import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionFiles:
    """What a revision has.

    Attributes:
        folder: Holds its baselines as the folder of the baselines does, without programs and log.
        commit: The revision's full name.
        date: When it was committed, ``YYYY-MM-DD``.
    """

    folder: Path
    commit: str
    date: str


@contextmanager
def revision_files(root: Path, revision: str) -> Iterator[RevisionFiles | None]:
    """Give the baselines of a revision; ``None`` if git does not know it, or it has no baseline there.

    Args:
        root: The folder of the baselines; it need not exist in the checkout any more.
        revision: A commit, a branch, a tag.

    Raises:
        UsageError: If git cannot hand them over.
    """
    top = run_git(_nearest(root), "rev-parse", "--show-toplevel")
    commit = commit_of(root, revision)
    packed = _pack(Path(top), commit, os.path.relpath(root.resolve(), top)) if top and commit else b""
    if not top or not commit or not packed:
        yield None
        return
    date = (run_git(Path(top), "show", "--no-patch", "--format=%cs", commit) or "")[:10]
    with TemporaryDirectory(prefix="jaxgate-") as folder:
        try:
            with tarfile.TarFile(fileobj=io.BytesIO(packed)) as archive:
                archive.extractall(folder, filter="data")
        except tarfile.TarError as error:
            # Links that lead elsewhere; or nothing at all, where .gitattributes says export-ignore.
            raise UsageError(
                f"expected baselines in {revision}, found what git archive cannot hand over ({error}): is their folder marked "
                "export-ignore in .gitattributes, or has it links?"
            ) from None
        yield RevisionFiles(folder=Path(folder) / os.path.relpath(root.resolve(), top), commit=commit, date=date)


def commit_of(root: Path, revision: str) -> str | None:
    """The full name of a revision; ``None`` if git does not know it."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return run_git(_nearest(root), *asked)


def _nearest(root: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(folder for folder in (root.resolve(), *root.resolve().parents) if folder.is_dir())


def _pack(top: Path, commit: str, folder: str) -> bytes:
    """A tar of the baselines; empty if there is none, which git refuses."""
    command = git_command(top, "archive", "--format=tar", commit, "--", f":(glob){Path(folder).as_posix()}/*/*/*.json")
    try:
        answer = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return answer.stdout if answer.returncode == 0 else b""
