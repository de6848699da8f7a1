"""What is searched: a range of commits, or of releases of a package.

Commits are searched by git's own ``git bisect`` in a worktree beside the checkout, which is not touched. git chooses them. What
it prints is not read: it is told the marks, and asked which commit is next and which are left. Of releases pip says which there
are, and makes an environment of each that is tried.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import distributions, version
from pathlib import Path
from shlex import quote

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from jaxgate.ext.bisect.judge import remaining
from jaxgate.ext.bisect.kept import copy_files, forget
from jaxgate.ext.bisect.model import Left, Mark
from jaxgate.ext.upgrade.environment import EnvironmentSpec
from jaxgate.ext.upgrade.venv import prepare_environment
from jaxgate.keep.git import run_git
from jaxgate.model.outcome import UsageError
from jaxgate.model.words import shortlist
from jaxgate.processes.child import Finished, run_child
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


_EXTRAS = {"jax-cuda12-plugin": "cuda12", "jax-cuda13-plugin": "cuda13", "libtpu": "tpu"}
"""What brings the plugins that are installed here, so that another jax finds this machine's devices, too."""
_MOST = 8
"""Releases that a message names."""


def releases_of(package: str, run: Callable[..., Finished] = run_child) -> list[str]:
    """The releases that pip can install for this Python, oldest first, without prereleases.

    ``run`` runs pip in a process.

    Raises:
        UsageError: If pip is not there, or finds none.
    """
    done = run([sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", package])
    if "No module named pip" in done.stderr:
        raise UsageError(f"expected pip in {sys.executable}, found none; install it: {sys.executable} -m ensurepip")
    listed = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    if listed is None:
        raise UsageError(f"pip finds no release of {package}: {done.last_words}")
    versions: dict[str, Version] = {}
    for text in re.split(r",\s*", listed[1].strip()):
        with suppress(InvalidVersion):
            versions[text] = Version(text)
    return sorted((text for text in versions if not versions[text].is_prerelease), key=versions.__getitem__)


def requirement(package: str, release: str, installed: Iterable[str]) -> str:
    """What is installed to have a release: of jax, with the plugins that are here."""
    extras = sorted({extra for name, extra in _EXTRAS.items() if name in installed}) if package == "jax" else []
    with_extras = f"{package}[{','.join(extras)}]" if extras else package
    return f"{with_extras}=={release}"


def between(releases: Sequence[str], good: str, bad: str) -> list[str]:
    """The releases from a good one to a bad one, both included.

    Raises:
        UsageError: If one of them is not there, or they are in another order.
    """
    for option, release in (("--good", good), ("--bad", bad)):
        if release not in releases:
            python = f"{sys.version_info.major}.{sys.version_info.minor}"
            newest = shortlist([*reversed(releases)], _MOST)
            raise UsageError(
                f"expected a release that pip finds for Python {python}, found {option} {release}; it finds {newest}"
            )
    first, last = releases.index(good), releases.index(bad)
    if first >= last:
        raise UsageError(
            f"expected --good to be older than --bad, found {good} and {bad}; exchange them: "
            "a fact that became better is searched for, too"
        )
    return [*releases[first : last + 1]]


class ReleaseRange:
    """The releases from a good one to a bad one, oldest first; the project is as it stands in all of them."""

    unit = "release"

    def __init__(
        self, project: Path, package: str, revisions: Sequence[str], cache: Path, *, environ: Mapping[str, str]
    ) -> None:
        self.revisions = revisions
        self.good, self.bad = revisions[0], revisions[-1]
        self._project, self._package, self._cache, self._environ = project, package, cache, environ

    def short(self, revision: str) -> str:
        """A release as people name it."""
        return revision

    def title(self, revision: str) -> str:
        """Package and release."""
        return f"{self._package} {revision}"

    describe = title

    @contextmanager
    def opened(self, revision: str, *, copied: bool) -> Iterator[Side]:  # noqa: ARG002 - a project has its own tests
        """The project in an environment that has a release.

        Raises:
            UsageError: If it cannot be made.
        """
        if revision == version(self._package):
            yield Side(self._project, self._environ, OPTION)
            return
        installed = {canonicalize_name(one.metadata["Name"]) for one in distributions() if one.metadata["Name"]}
        wanted = requirement(self._package, revision, installed)
        asked = EnvironmentSpec(requirements=(wanted,))
        python, variables = prepare_environment(asked, self._cache, self._environ)
        yield Side(self._project, variables, OPTION, python)

    def against(self, recorded: Path, *, timed: bool) -> list[str]:  # noqa: ARG002 - launches record both sides anew
        """The options that time both environments in fresh processes; none for facts, which both sides have recorded."""
        if not timed:
            return []
        with self.opened(self.good, copied=False) as good:
            return [f"--perf-against={good.python}"]

    def left(self, marks: Sequence[tuple[str, Mark]]) -> Left:
        """What is left of the range."""
        return remaining(self.revisions, dict(marks))

    def close(self) -> None:
        """Keep the environments for other searches."""


Range = CommitRange | ReleaseRange
