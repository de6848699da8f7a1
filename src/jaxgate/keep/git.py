"""git, asked about a checkout: where a recording comes from, what became of its files, which baselines a revision has."""

from __future__ import annotations

import datetime as dt
import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from jaxgate.model.baseline import Provenance
from jaxgate.model.outcome import UsageError

TIMEOUT_S = 20.0
TRUNKS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
COMMIT = re.compile(r"[0-9a-f]{4,64}")
"""A commit by four or more characters of its id."""
_NO_CODE = (
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "log.showSignature=false",
)
"""Settings that keep git from running what a checkout brings along: embedded repositories, monitors, hooks, verifiers."""
_KEPT = (".json", ".gz", ".md", ".toml")
"""Endings of what is stored among the baselines; an editor's files may be ignored."""


def git_command(folder: Path, *arguments: str) -> list[str]:
    """A command line of git that runs nothing of the checkout."""
    settings = [part for setting in _NO_CODE for part in ("-c", setting)]
    return ["git", *settings, "-C", str(folder), *arguments]


def run_git(folder: Path, *arguments: str, timeout_s: float | None = TIMEOUT_S) -> str | None:
    """What git answers, without white space around it; ``None`` if it refuses, is not there, or takes too long.

    A pull request decides what lies in the checkout, so git runs nothing of it, and is not asked inside a folder that
    looks like a repository of its own. ``folder`` lies inside the checkout. ``timeout_s`` is ``None`` where git writes
    a whole checkout.
    """
    if _in_embedded_repository(folder):
        return None
    answer = _answered(git_command(folder, *arguments), timeout_s)
    return None if answer is None else os.fsdecode(answer).strip()  # names of files are bytes


def _answered(command: list[str], timeout_s: float | None) -> bytes | None:
    try:
        answer = subprocess.run(command, capture_output=True, check=False, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def _in_embedded_repository(folder: Path) -> bool:
    """Whether git would take committed files for a repository; git before 2.38 does not know the setting against it."""
    below_top = takewhile(lambda one: not (one / ".git").exists(), (folder.resolve(), *folder.resolve().parents))
    return any((one / "HEAD").is_file() and (one / "objects").is_dir() and (one / "refs").is_dir() for one in below_top)


def utc_now() -> str:
    """This moment, UTC, to the second: ``2026-11-25T02:30:00+00:00``."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def utc_today() -> dt.date:
    """The UTC date of now."""
    return dt.datetime.now(dt.UTC).date()


def read_provenance(project: Path, *, today: dt.date | None = None) -> Provenance:
    """Describe the checkout that a recording is made from; without git there is no commit."""
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


_DIFF = ("diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-prefix")
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_lines(folder: Path, base: str) -> dict[str, list[int]]:
    """Lines of Python that a checkout changes since a commit, by file within the repository; of gone lines the one before."""
    found: dict[str, list[int]] = {}
    file = ""
    for line in (run_git(folder, *_DIFF, base, "--", ":/*.py") or "").splitlines():
        if line.startswith("+++ "):
            file = line[4:].rstrip("\t")
        elif hunk := _HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(file, []).extend(range(first, first + count) if count else [max(first, 1)])
    return found


_JUDGES = re.compile(
    r"\bperf_[a-z]+|--perf-|\bJAXGATE_[A-Z]|\baddopts\b|\btolerances\s*=|\bTolerance\(|\bexpected_traces\b|\bmark\.(skip|xfail)"
)
MAX_LINE = 160
"""Characters of an edited line that are told."""


def judge_edits(folder: Path, base: str) -> tuple[str, ...]:
    """Lines that a checkout changes since a commit and that say how it is judged, ``conftest.py: + perf_strict = false``.

    They are lines of Python and of settings: options, tolerances, what is expected, marks that leave a test out.
    """
    answer = run_git(folder, *_DIFF, base, "--", "*.py", "*.toml", "*.ini", "*.cfg", "*.yml", "*.yaml") or ""
    file, found = "", []
    for line in answer.splitlines():
        if line.startswith(("+++ ", "--- ")):
            file = file if line[4:] == os.devnull else line[4:]
        elif line[:1] in ("+", "-") and _JUDGES.search(line):
            found.append(f"{file}: {line[0]} {line[1:].strip()[:MAX_LINE]}")
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionFiles:
    """The baselines of a revision, and which one it is."""

    folder: Path  # holds its baselines as the folder of the baselines does, without programs and log
    commit: str  # the revision's full name
    date: str  # when it was committed, `YYYY-MM-DD`


@contextmanager
def revision_files(root: Path, revision: str) -> Iterator[RevisionFiles | None]:
    """Give the baselines of a revision; ``None`` if git does not know it, or it has no baseline there.

    The folder need not exist in the checkout any more.

    Raises:
        UsageError: If git cannot hand them over.
    """
    top = run_git(_nearest(root), "rev-parse", "--show-toplevel")
    commit = commit_of(root, revision)
    if not top or not commit:
        yield None
        return
    inside = os.path.relpath(root.resolve(), top)
    files = f":(glob){Path(inside).as_posix()}/*/*/*.json"
    packed = _answered(git_command(Path(top), "archive", "--format=tar", commit, "--", files), TIMEOUT_S)
    if not packed:  # git refuses where there is none
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
        yield RevisionFiles(folder=Path(folder) / inside, commit=commit, date=date)


def commit_of(root: Path, revision: str) -> str | None:
    """The full name of a revision; ``None`` if git does not know it."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return run_git(_nearest(root), *asked)


def _nearest(root: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(folder for folder in (root.resolve(), *root.resolve().parents) if folder.is_dir())
