"""What git knows: where a recording comes from, and what is known of the files that it wrote."""

from __future__ import annotations

import datetime as dt
import os
from importlib.metadata import version
from pathlib import Path

from jaxgate.keep.git import run_git
from jaxgate.model import Provenance

_KEPT = (".json", ".gz", ".md", ".toml")
"""Endings of what is stored among the baselines; an editor's files may be ignored."""
TRUNKS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def utc_now() -> str:
    """This moment, UTC, to the second: ``2026-11-25T02:30:00+00:00``."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def utc_today() -> dt.date:
    """The UTC date of now."""
    return dt.datetime.now(dt.UTC).date()


def read_provenance(project: Path, *, today: dt.date | None = None) -> Provenance:
    """Describe the checkout that a recording is made from.

    Args:
        project: A folder inside the checkout; one without git has no commit.
        today: The date; the UTC date of now by default.
    """
    date = today or utc_today()
    commit = run_git(project, "rev-parse", "HEAD") or None
    return Provenance(
        commit=commit,
        dirty=commit is not None and run_git(project, "status", "--porcelain", "--untracked-files=no") != "",
        date=date.isoformat(),
        jaxgate=version("jaxgate"),
    )


def uncommitted(folder: Path) -> tuple[str, ...] | None:
    """The files under a folder that differ from the last commit, removed and new ones too, relative to the folder.

    Returns:
        ``None`` where git does not know: there is no checkout, or the folder lies outside it.
    """
    if not folder.is_dir():
        return None
    # names as they are, each ended by a NUL; without a rename no entry has a second name
    answer = run_git(folder, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".")
    top = run_git(folder, "rev-parse", "--show-toplevel")
    if answer is None or not top:
        return None
    found = [Path(top) / entry.lstrip()[2:].lstrip() for entry in answer.split("\0") if entry.strip()]
    return tuple(sorted(os.path.relpath(path, folder.resolve()) for path in found))


def ignored(folder: Path) -> tuple[str, ...]:
    """The files under a folder that git leaves out because a rule says so, relative to it: nobody else will have them."""
    answer = run_git(folder, "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", ".")
    return tuple(sorted(name for name in (answer or "").split("\0") if name.endswith(_KEPT)))


def last_committers(folder: Path) -> dict[Path, str]:
    """Who committed each file under a folder last, from one look at the history.

    A shallow checkout knows its last commit only, which would have made every file: it proves nothing.
    """
    top = run_git(folder, "rev-parse", "--show-toplevel") if folder.is_dir() else None
    if not top or run_git(folder, "rev-parse", "--is-shallow-repository") != "false":
        return {}
    answer = run_git(folder, "log", "--format=%x01%an", "--name-only", "-z", "--", ".") or ""
    found: dict[Path, str] = {}
    for commit in answer.split("\x01")[1:]:
        who, *names = commit.replace("\n", "\0").split("\0")
        for name in filter(None, names):
            found.setdefault(Path(top) / name, who)
    return found


def merge_base(folder: Path) -> str | None:
    """The commit where this branch left the trunk; ``None`` if git finds no trunk."""
    return next(filter(None, (run_git(folder, "merge-base", "HEAD", trunk) for trunk in TRUNKS)), None)
