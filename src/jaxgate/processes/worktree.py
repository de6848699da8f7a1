"""Another git revision in a worktree beside the checkout, which records the selected tests in a process of its own.

From there on nothing is special: today's programs are compared and duelled with those. No stored baseline is needed,
and none is touched. Its code must be imported from there and from nowhere else: a package that is installed in editable
mode, or lies in ``src/``, is found through ``sys.path`` in the original checkout, and every comparison would be SAME.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxgate.keep.git import TRUNKS, commit_of, merge_base, run_git
from jaxgate.model.outcome import UsageError
from jaxgate.model.words import cut
from jaxgate.processes.pytest_child import RecordSelection, Selection, Side, record_selection
from jaxgate.settings import NOT_FROM, ONLY_FROM

_ENGINE = Path(__file__).resolve().parents[1]


def environment_for(worktree: Path, top: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that runs another revision."""
    found = dict(environ)
    inside = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).resolve().is_relative_to(top)]
    moved = [str(worktree / entry.relative_to(top)) for entry in inside if _is_source(entry)]
    found["PYTHONPATH"] = os.pathsep.join([*moved, *filter(None, [environ.get("PYTHONPATH")])])
    found[NOT_FROM] = str(top)
    found[ONLY_FROM] = str(worktree)
    return found


def refuse_modules_from(top: Path) -> None:
    """End the run if it imported code of the checkout that it must not come from.

    Raises:
        UsageError: If there is one; names the first.
    """
    for name, path in _imported():
        if path.is_relative_to(top) and _is_source(path):
            raise UsageError(
                f"the other revision imported {name} from {path}, which is today's code; install the project so that "
                "its folder comes first on sys.path (a plain src folder or an editable install by path)"
            )


def refuse_installed_copies(worktree: Path) -> None:
    """End the run if a package that the revision has in its checkout was imported from where it is installed.

    Raises:
        UsageError: If there is one; names the first.
    """
    for name, path in _imported():
        if "." in name or path.is_relative_to(worktree) or path.is_relative_to(_ENGINE):
            continue
        roots = (worktree, worktree / "src")
        own = any((root / name / "__init__.py").exists() or (root / f"{name}.py").exists() for root in roots)
        if own and {"site-packages", "dist-packages"} & set(path.parts):
            raise UsageError(
                f"the other revision imported {name} from {path}, an installed copy of one revision for both; "
                "install the project in editable mode: pip install -e ."
            )


def _imported() -> Iterator[tuple[str, Path]]:
    """The modules of this process that have files, with these."""
    for name, module in sorted(sys.modules.items()):
        if (file := getattr(module, "__file__", None)) is not None:
            yield name, Path(file).resolve()


def _is_source(path: Path) -> bool:
    """Whether code there is the project's: not an environment inside the checkout, nor this engine."""
    installed = any(part in ("site-packages", "dist-packages") for part in path.parts)
    environment = path.is_relative_to(Path(sys.prefix).resolve()) and Path(sys.prefix) != Path(sys.base_prefix)
    return not (installed or environment or path == _ENGINE.parent or path.is_relative_to(_ENGINE))


OPTION = "--perf-against"
MERGE_BASE = "merge-base"
_OR = ", which is no environment either: no virtual environment, jax==0.10.2 or NAME=VALUE (XLA_FLAGS, xla_…, jax_…)"


def resolve_revision(project: Path, revision: str, option: str = OPTION) -> str:
    """Find the commit that a revision names.

    ``revision`` is anything that git takes, or ``merge-base``: where this branch left the trunk. ``option`` is named in
    errors.

    Raises:
        UsageError: If git does not know it.
    """
    if run_git(project, "rev-parse", "--show-toplevel") is None:
        _unknown(f"{cut(revision, 200)}: {project} is not a git checkout", option)
    if revision != MERGE_BASE:
        return commit_of(project, revision) or _unknown(cut(revision, 200), option)
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
    """Record the baselines of a commit; gives what failed there, by test: nothing compares its case.

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
    raise UsageError(f"{option}: expected a revision that git knows, found {what}{_OR if option == OPTION else ''}")
