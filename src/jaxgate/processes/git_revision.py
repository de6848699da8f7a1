"""The other side of a comparison with a git revision: recorded there, now, by the same tests.

A clean worktree of the revision is checked out, and the selected tests record their baselines from it, in a
process of its own, into a folder of its own. From there on nothing is special: today's programs are compared
and duelled with those. No stored baseline is needed, and none is touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from jaxgate.keep import TRUNKS, merge_base, run_git
from jaxgate.model import UsageError
from jaxgate.processes.pytest_child import RecordSelection, Selection, Side, record_selection
from jaxgate.processes.worktree import environment_for

OPTION = "--perf-against"
MERGE_BASE = "merge-base"


def resolve_revision(project: Path, revision: str, option: str = OPTION) -> str:
    """Find the commit that a revision names.

    Args:
        project: A folder inside the checkout.
        revision: Anything that git takes, or ``merge-base``: where this branch left the trunk.
        option: Who asks, for messages.

    Raises:
        UsageError: If git does not know it.
    """
    if run_git(project, "rev-parse", "--show-toplevel") is None:
        raise UsageError(f"{option}: {project} is not a git checkout")
    if revision != MERGE_BASE:
        found = run_git(project, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return found or _unknown(revision, option)
    return merge_base(project) or _unknown(f"{MERGE_BASE} with any of {', '.join(TRUNKS)}", option)


def record_revision(
    project: Path,
    commit: str,
    chosen: Selection,
    into: Path,
    *,
    environ: Mapping[str, str],
    record: RecordSelection = record_selection,
) -> dict[str, str]:
    """Record the baselines of a commit.

    Args:
        project: Root folder of the tests.
        commit: The commit.
        chosen: Which tests.
        into: Folder for what they record.
        environ: The environment of a process that runs this checkout.
        record: Records the selected tests in a process of its own.

    Returns:
        What failed there, by test: nothing compares its case.

    Raises:
        UsageError: If the other side cannot be checked out or collected.
    """
    top = Path(run_git(project, "rev-parse", "--show-toplevel") or _unknown(str(project))).resolve()
    with tempfile.TemporaryDirectory(prefix="jaxgate-against-") as name:
        worktree = Path(name) / "worktree"
        if run_git(project, "worktree", "add", "--detach", "--force", str(worktree), commit, timeout_s=None) is None:
            raise UsageError(f"--perf-against: git cannot check out {commit} beside this checkout")
        try:
            other = Side(worktree / project.relative_to(top), environment_for(worktree.resolve(), top, environ), OPTION)
            return record(other, chosen, into)
        finally:
            run_git(project, "worktree", "remove", "--force", str(worktree), timeout_s=None)


def _unknown(what: str, option: str = OPTION) -> str:
    raise UsageError(f"{option}: expected a revision that git knows, found {what}")
