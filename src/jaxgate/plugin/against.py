"""The other side of a comparison with a git revision: recorded there, now, by the same tests.

A clean worktree of the revision is checked out, and the selected tests record their baselines from it, in a
process of its own, into a folder of its own. From there on nothing is special: today's programs are compared
and duelled with those. No stored baseline is needed, and none is touched.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from jaxgate.plugin.worktree import environment_for

MERGE_BASE = "merge-base"
_TRUNKS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_RECORDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
_TAIL = 15


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tests to run on the other side: paths relative to the root folder, and expressions."""

    paths: tuple[str, ...]
    keyword: str
    markers: str


def selection(config: pytest.Config) -> Selection:
    """What this run was asked to collect."""
    paths = []
    for argument in config.args:
        file, separator, rest = argument.partition("::")
        path = (config.invocation_params.dir / file).resolve()
        if path.is_relative_to(config.rootpath):
            paths.append(path.relative_to(config.rootpath).as_posix() + separator + rest)
    return Selection(tuple(paths), config.option.keyword, config.option.markexpr)


def resolve(project: Path, revision: str) -> str:
    """Find the commit that a revision names.

    Args:
        project: A folder inside the checkout.
        revision: Anything that git takes, or ``merge-base``: where this branch left the trunk.

    Raises:
        pytest.UsageError: If git does not know it.
    """
    if _git(project, "rev-parse", "--show-toplevel") is None:
        raise pytest.UsageError(f"--perf-against: {project} is not a git checkout")
    if revision != MERGE_BASE:
        return _git(project, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") or _unknown(revision)
    for trunk in _TRUNKS:
        commit = _git(project, "merge-base", "HEAD", trunk)
        if commit:
            return commit
    return _unknown(f"{MERGE_BASE} with any of {', '.join(_TRUNKS)}")


def record(project: Path, commit: str, chosen: Selection, into: Path) -> None:
    """Record the baselines of a commit.

    Args:
        project: Root folder of the tests, inside the checkout.
        commit: The commit.
        chosen: Which tests.
        into: Folder for the baselines.

    Raises:
        pytest.UsageError: If the other side cannot be checked out or collected; one test of it that fails is
            no error, its case is then on this side only.
    """
    top = Path(_git(project, "rev-parse", "--show-toplevel") or _unknown(str(project))).resolve()
    with tempfile.TemporaryDirectory(prefix="jaxgate-against-") as name:
        worktree = Path(name) / "worktree"
        if _git(project, "worktree", "add", "--detach", "--force", str(worktree), commit) is None:
            raise pytest.UsageError(f"--perf-against: git cannot check out {commit} beside this checkout")
        try:
            _run(worktree / project.relative_to(top), chosen, into, environment_for(worktree.resolve(), top))
        finally:
            _git(project, "worktree", "remove", "--force", str(worktree))


def _run(project: Path, chosen: Selection, into: Path, environment: dict[str, str]) -> None:
    paths = [path for path in chosen.paths if (project / path.partition("::")[0]).exists()]
    if chosen.paths and not paths:
        return  # none of it existed then
    command = [sys.executable, "-m", "pytest", *paths, "-q", "-p", "no:cacheprovider"]
    command += ["-k", chosen.keyword] if chosen.keyword else []
    command += ["-m", chosen.markers] if chosen.markers else []
    command += ["--perf-update", f"--perf-baselines={into}", "--no-perf-strict"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in _RECORDED:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_TAIL:])
        raise pytest.UsageError(f"--perf-against: the other side could not be recorded:\n{tail}")


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _unknown(what: str) -> str:
    raise pytest.UsageError(f"--perf-against: expected a revision that git knows, found {what}")
