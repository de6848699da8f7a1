"""What all tests share: their order, their environment, and the fixtures that give them a project of their own."""

from __future__ import annotations

import atexit
import gc
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.project import Project

if TYPE_CHECKING:
    from support.fakes import Lab
    from support.targets import CompilerHere

    from jaxgate.ext.targets.model import Target


SETTINGS = ("CI", "JAXGATE_STRICT", "JAXGATE_BASELINES")
COMPILERS = {"libtpu": "libtpu", "the CUDA plugin": "jax_cuda13_plugin"}
"""What compiles for hardware that is not there, with the module by which it is known."""
LONGEST = ("faults", "guests", "runs", "goldens", "ci", "processes", "plugin")
"""Folders whose files take longest: they come first, so that at the end no worker waits for one of them."""
SHUFFLE = "SHUFFLE"
"""Variable with a number: tests run in an order drawn from it (``make test SHUFFLE=7``)."""


def pytest_configure() -> None:
    """Keep bytecode whatever the environment says.

    Without it pytest rewrites all tests anew in every process of every run, for 6 s, and each process of the projects
    of these tests compiles jaxgate anew, for 1.5 s.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_report_header() -> str:
    """Say by what the tests of targets are answered: a compiler that is installed, or results that were recorded from one."""
    found = {name: find_spec(module) is not None for name, module in COMPILERS.items()}
    installed, missing = ([name for name, there in found.items() if there is wanted] for wanted in (True, False))
    parts = [f"compiled by {' and '.join(installed)}"] if installed else []
    parts += [f"recorded results stand for {' and '.join(missing)}, not installed"] if missing else []
    return f"targets: {'; '.join(parts)}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Import JAX before the first test: pytester forgets modules that a run imports, and compiled ones must not load twice.

    The projects of these tests are runs of their own: one inside a worker of pytest-xdist is no worker.
    """
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
        del os.environ[name]
    os.environ.setdefault("JAXGATE_OPINION", "0")  # processes more for each run; who tests them asks for them
    os.environ["JAXGATE_HISTORY"] = "none"  # likewise
    os.environ["XDG_CACHE_HOME"] = str(_cache_with_charts())
    os.fsync = lambda _: None  # no test survives a power cut; a disk takes longer than most of them
    os.environ["JAXGATE_MACHINE_HELD"] = "tests"  # several files at a time; they judge no times of this machine
    from support.fakes import import_everything  # not earlier: ``pytest --help`` loads this file too

    import_everything()
    from support.in_process import do_once  # imports JAX, too

    do_once()

    items.sort(key=lambda item: LONGEST.index(folder) if (folder := item.path.parent.name) in LONGEST else len(LONGEST))
    seed = os.environ.pop(SHUFFLE, "")  # not for the runs in these tests
    if seed:
        random.Random(seed).shuffle(items)
    gc.collect()
    gc.freeze()  # what is imported is no garbage: looking at it takes every full collection 0.1 s, and a run makes several


def _cache_with_charts() -> Path:
    """A cache for all runs in these tests: what jaxgate keeps in the user's stays as it is.

    What others keep in the user's cache (wheels of pip, fonts of matplotlib) is found there as ever.
    """
    folder = Path(tempfile.mkdtemp(prefix="jaxgate-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    of_user = Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache")
    for other in of_user.iterdir() if of_user.is_dir() else ():
        if other.name != "jaxgate":
            (folder / other.name).symlink_to(other)
    return folder


@pytest.fixture(autouse=True)
def no_profile_is_left_open() -> Iterator[None]:
    """A test that leaves a profile open is red itself, and not those that want to take one in the same process."""
    yield
    from jaxgate.observe.compat import open_profile, stop_trace

    if open_profile() is not None:
        stop_trace()
        pytest.fail("expected no open profile at the end of the test, found one")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Project:
    """An empty project, outside CI."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAXGATE_PROFILE", "never")  # two seconds a red case; tests of profiles ask for them
    from support.fakes import judge_phases_by, shorten_duels

    judge_phases_by(monkeypatch)  # phases have tests of their own
    if "long_duels" not in request.fixturenames:
        shorten_duels(monkeypatch)
    return Project(pytester, request.path)


@pytest.fixture
def long_duels() -> None:
    """Duels as they are, for tests that ask how fast something is; those of others are so short that they find little."""


@pytest.fixture
def lab(project: Project, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """What the project's runs look at the world with, as the test chooses."""
    from support.fakes import Lab

    found = Lab(project.path, monkeypatch)
    project.instruments = found.instruments
    return found


@pytest.fixture
def compilers(lab: Lab) -> list[CompilerHere]:
    """Those that runs opened for hardware that is not there."""
    from support.targets import CompilerHere

    opened: list[CompilerHere] = []

    def open_target(target: Target) -> CompilerHere:
        opened.append(CompilerHere(target))
        return opened[-1]

    lab.instruments["open_target"] = open_target
    return opened
