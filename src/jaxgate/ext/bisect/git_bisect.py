"""A range of commits, searched by git's own ``git bisect`` in a worktree beside the checkout, which is not touched.

git chooses the commits. What it prints is not read: it is told the marks, and asked which commit is next and which are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from jaxgate.ext.bisect.kept import copy_files, forget
from jaxgate.ext.bisect.model import Left, Mark
from jaxgate.keep.git import run_git
from jaxgate.model.outcome import UsageError
from jaxgate.processes.pytest_child import Side
from jaxgate.processes.worktree import environment_for

OPTION = "jaxgate bisect"


class CommitRange:
    """The commits between a good and a bad one.

    ``folder`` keeps the worktree for a search that goes on. ``files`` are today's tests and what they need, relative to the
    project, for commits that lack them.

    Raises:
        UsageError: If git does not find the one among the ancestors of the other, or makes no worktree.
    """

    unit = "commit"

    def __init__(
        self,
        project: Path,
        good: str,
        bad: str,
        folder: Path,
        *,
        files: Sequence[Path],
        environ: Mapping[str, str],
        first_parent: bool = False,
    ) -> None:
        self.good, self.bad = good, bad
        self._project, self._files, self._environ = project, files, environ
        self._top = Path(run_git(project, "rev-parse", "--show-toplevel") or project).resolve()
        self._worktree = folder / "worktree"
        self._only = ("--first-parent",) if first_parent else ()
        self._started = False
        self._told = 0
        if good == bad:
            raise UsageError(f"expected two commits, found {good[:10]} as --good and as --bad")
        if run_git(project, "merge-base", "--is-ancestor", good, bad) is None:
            base = run_git(project, "merge-base", good, bad)
            hint = f"; their merge base is {base[:10]}: --good {base[:10]}" if base else ""
            raise UsageError(f"expected --good to be an ancestor of --bad, found {good[:10]} and {bad[:10]}{hint}")

    @property
    def revisions(self) -> Sequence[str]:
        """All commits of the range, oldest first, the good one included."""
        between = run_git(
            self._project, "rev-list", "--reverse", "--topo-order", *self._only, f"{self.good}..{self.bad}"
        )
        return (self.good, *(between or "").split())

    def short(self, revision: str) -> str:
        """A commit as people name it."""
        return revision[:10]

    def title(self, revision: str) -> str:
        """A commit's date and subject."""
        return run_git(self._project, "log", "-1", "--format=%as %s", revision) or ""

    def describe(self, revision: str) -> str:
        """A commit's whole name, its author's date and its subject."""
        return run_git(self._project, "log", "-1", "--format=%H of %aI by %an: %s", revision) or revision

    @contextmanager
    def opened(self, revision: str, *, copied: bool) -> Iterator[Side]:
        """A checkout of a commit, to run tests in.

        Raises:
            UsageError: If git cannot check it out.
        """
        tree = self._worktree
        self._prepare()
        run_git(tree, "clean", "--quiet", "-ffdx", timeout_s=None)  # no bytecode of another commit, no copied test
        if run_git(tree, "checkout", "--quiet", "--force", "--detach", revision, timeout_s=None) is None:
            raise UsageError(f"git cannot check out {revision[:10]} in {tree}")
        inside = tree / self._project.relative_to(self._top)
        if copied:
            copy_files(self._files, self._project, inside)
        options = f"{self._environ.get('PYTEST_ADDOPTS', '')} --rootdir={quote(str(inside))}".strip()
        environ = environment_for(tree.resolve(), self._top, {**self._environ, "PYTEST_ADDOPTS": options})
        yield Side(inside, environ, OPTION)

    def against(self, recorded: Path, *, timed: bool) -> list[str]:
        """The options that compare with what the good side recorded."""
        return [f"--perf-baselines={recorded}", *([] if timed else ["--benchmark-disable"])]

    def left(self, marks: Sequence[tuple[str, Mark]]) -> Left:
        """Tell git what is new among the marks, and ask what is left.

        Raises:
            UsageError: If git does not go on.
        """
        self._prepare()
        if not self._started:
            start = ("bisect", "start", "--no-checkout", *self._only, self.bad, self.good)
            if run_git(self._worktree, *start, timeout_s=None) is None:
                raise UsageError("git bisect does not start; expected git 2.29 or newer")
            self._started = True
        for commit, mark in marks[self._told :]:
            verb = "skip" if mark is Mark.SKIPPED else str(mark)
            # An error where only skipped ones are left: what git knows then is asked for below.
            run_git(self._worktree, "bisect", verb, commit, timeout_s=None)
            self._told += 1
        good = [self.good, *(commit for commit, mark in marks if mark is Mark.GOOD)]
        bad = next((commit for commit, mark in reversed(marks) if mark is Mark.BAD), self.bad)
        found = run_git(self._worktree, "rev-list", "--reverse", "--topo-order", *self._only, bad, "--not", *good)
        first_bad = tuple((found or "").split())
        known = {commit for commit, _ in marks} | {bad}
        following = None
        if any(commit not in known for commit in first_bad):
            following = run_git(self._worktree, "rev-parse", "--verify", "--quiet", "BISECT_HEAD")
            if following is None or following in known:
                raise UsageError(f"git bisect did not go on after {marks[-1][0][:10] if marks else 'its start'}")
        return Left(first_bad=first_bad, following=following)

    def close(self) -> None:
        """Remove the worktree, once the search is over."""
        run_git(self._project, "worktree", "remove", "--force", "--force", str(self._worktree), timeout_s=None)
        forget(self._worktree)
        run_git(self._project, "worktree", "prune")

    def _prepare(self) -> None:
        """Make the worktree, unless an earlier run of this search has left it."""
        if run_git(self._worktree, "rev-parse", "--show-toplevel") == str(self._worktree.resolve()):
            return
        self.close()
        self._worktree.parent.mkdir(parents=True, exist_ok=True)
        made = run_git(
            self._project,
            "worktree",
            "add",
            "--no-checkout",
            "--detach",
            "--force",
            str(self._worktree),
            self.bad,
            timeout_s=None,
        )
        if made is None:
            raise UsageError(f"git cannot make a worktree in {self._worktree}; is there room, and may git write there?")
