"""A range of releases of a package: pip says which there are, and makes an environment of each that is tried."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import distributions, version
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from jaxgate.ext.bisect.git_bisect import OPTION
from jaxgate.ext.bisect.judge import remaining
from jaxgate.ext.bisect.model import Left, Mark
from jaxgate.ext.upgrade.environment import EnvironmentSpec
from jaxgate.ext.upgrade.venv import prepare_environment
from jaxgate.model.outcome import UsageError
from jaxgate.model.words import shortlist
from jaxgate.processes.child import Finished, run_child
from jaxgate.processes.pytest_child import Side

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
    return sorted_releases(re.split(r",\s*", listed[1].strip()))


def sorted_releases(texts: Iterable[str]) -> list[str]:
    """Releases by their age; prereleases, and what is no version, are left out."""
    versions = {text: found for text in texts if (found := _parsed(text)) is not None and not found.is_prerelease}
    return sorted(versions, key=versions.__getitem__)


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


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
