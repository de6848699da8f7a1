"""``jaxgate record``: baselines from where CI runs, as a patch that anyone can apply.

Exit codes: 0 recorded · 1 a case could not be recorded; the patch has the others · 2 nothing was: the machine is noisy,
the checkout has changed baselines, or the suite is broken.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from jaxgate.cli.console import refuse, say, tell
from jaxgate.cli.pytest_arguments import artifacts_folder, baselines_folder, platform, suite
from jaxgate.keep.artifacts import Artifacts, ForeignFolderError
from jaxgate.keep.git import git_command, ignored, run_git
from jaxgate.keep.log import last_line
from jaxgate.observe.machine.load import MachineState, Ticks, look, read_ticks

PATCH = "baselines.patch"
_RECORDED, _SOME_FAILED, _NOTHING = 0, 1, 2
"""Exit codes of this command."""


def record(
    why: str,
    arguments: Sequence[str],
    *,
    busy_ok: bool,
    environ: Mapping[str, str] = os.environ,
    see: Callable[..., MachineState] = look,
    ticks: Callable[[], Ticks | None] = read_ticks,
) -> int:
    """Record baselines, and write what that changed as a patch; gives the exit code.

    ``busy_ok`` records on a noisy machine, too, and says so in the log.
    """
    baselines = baselines_folder(arguments, environ)
    changed = run_git(Path(), "status", "--porcelain", "--", str(baselines))
    if changed is None:
        return _refuse("expected a git checkout, found none: a patch is made against its commit")
    if changed:
        return _refuse(f"expected {baselines} as it was committed, found changes; commit them, or git stash")
    if found := ignored(baselines):
        return _refuse(
            f"expected no file of the baselines ignored by git, found {found[0]}; git add --force it, and commit"
        )
    artifacts = Artifacts(artifacts_folder(arguments, environ))
    try:
        artifacts.join()
    except (ForeignFolderError, OSError) as error:
        return _refuse(str(error))
    here, begin = platform(environ), ticks()
    noise = list(see(here, after_work=True).objections)  # the load of the last minute is that of this job itself
    if noise and not busy_ok:
        return _refuse(
            f"the machine is not quiet: {'; '.join(noise)}. Nothing was recorded; --busy-ok records all the same"
        )
    reason = f"{why} (on a machine that was not quiet: {'; '.join(noise)})" if noise else why
    command = [sys.executable, "-m", "pytest", *suite(arguments), "--perf-update", f"--perf-why={reason}", *arguments]
    status = subprocess.run(command, check=False, env=dict(environ)).returncode
    after = see(here, after_work=True, since=begin).objections
    if after and not busy_ok:
        _restore(baselines)
        return _refuse(
            f"the machine did not stay quiet: {'; '.join(after)}. What was recorded was taken back; --busy-ok keeps it"
        )
    if status not in (0, 1):
        _restore(baselines)
        return _refuse(f"pytest ended with exit code {status}; what was recorded was taken back")
    patch = _patch(baselines)
    if not patch:
        return _refuse("nothing was recorded")
    artifacts.write_page(PATCH, patch)
    say(last_line(baselines))
    file = artifacts.root / PATCH
    tell(patch=str(file), log=last_line(baselines))
    say(f"{len(patch.encode()):,} bytes in {file}; apply them: git apply {file}")
    return _RECORDED if status == 0 else _SOME_FAILED


def _patch(baselines: Path) -> str:
    """What changed in the baselines, new files with it; the index of the checkout is left alone."""
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        environ = {**os.environ, "GIT_INDEX_FILE": str(Path(name) / "index")}
        for arguments in (("read-tree", "HEAD"), ("add", "--all", "--force", "--", str(baselines))):
            subprocess.run(git_command(Path(), *arguments), check=True, env=environ, capture_output=True)
        plain = ("--binary", "--no-ext-diff", "--no-textconv")  # a patch that applies, whatever shows differences here
        command = git_command(Path(), "diff", "--cached", *plain, "HEAD", "--", str(baselines))
        return subprocess.run(command, check=True, env=environ, capture_output=True).stdout.decode()


def _restore(baselines: Path) -> None:
    """Take back what was recorded: nothing else in there had changed."""
    run_git(Path(), "checkout", "--quiet", "HEAD", "--", str(baselines), timeout_s=None)
    run_git(Path(), "clean", "--quiet", "--force", "-d", "-x", "--", str(baselines), timeout_s=None)


_refuse = partial(refuse, "record", code=_NOTHING)
