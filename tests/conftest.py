"""A project of its own for tests of the plugin: the catalogue or a test file, run through the real pytest."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SETTINGS = ("CI", "JAXGATE_STRICT", "JAXGATE_BASELINES")


def pytest_collection_modifyitems() -> None:
    """Import JAX before the first test: pytester forgets modules that a run imports, and compiled ones must not load twice.

    The projects of these tests are runs of their own: one inside a worker of pytest-xdist is no worker.
    """
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
        del os.environ[name]
    os.environ["JAXGATE_MACHINE_HELD"] = "tests"  # several files at a time; they judge no times of this machine
    from jax.experimental.pallas import triton  # noqa: F401 - the catalogue has a kernel

    import jaxgate.plugin.gate  # noqa: F401 - not earlier: ``pytest --help`` loads this file too


class Project:
    """A folder with tests that gate, run in this process: JAX is imported once."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makepyprojecttoml('[tool.pytest]\npythonpath = ["."]\n')

    def write(self, name: str, text: str) -> None:
        """Write a file of the project; a changed test must not run from an old cache of itself."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for cache in self.path.rglob("__pycache__"):
            shutil.rmtree(cache)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text in a file; the text must be there once."""
        text = (self.path / name).read_text()
        assert text.count(old) == 1, f"expected {old!r} once in {name}, found it {text.count(old)} times"
        self.write(name, text.replace(old, new))

    def catalogue(self) -> None:
        """Copy the suite's own workloads and tests."""
        for folder in ("workloads", "perf"):
            shutil.copytree(REPOSITORY / folder, self.path / folder, ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, *arguments: str) -> Result:
        """Run pytest; modules of the project are imported afresh."""
        for name in [name for name in sys.modules if name.split(".")[0] in ("workloads", "helpers")]:
            del sys.modules[name]
        return Result(self.pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments))

    def baselines(self) -> dict[str, bytes]:
        """The stored baselines: relative path to content."""
        root = self.path / "baselines"
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.json"))}


class Result:
    """The outcome of one run."""

    def __init__(self, result: pytest.RunResult) -> None:
        self._result = result
        self.code = int(result.ret)
        self.text = result.stdout.str() + result.stderr.str()

    def counts(self, **expected: int) -> None:
        """Assert the counts of outcomes, as pytest reports them."""
        self._result.assert_outcomes(**expected)

    def line(self, word: str) -> str:
        """The first line that holds a word."""
        found = [line for line in self.text.splitlines() if word in line]
        assert found, f"no line with {word!r} in:\n{self.text}"
        return found[0]

    def shows(self, *pieces: str) -> None:
        """Assert that every piece is in the output."""
        for piece in pieces:
            assert piece in self.text, f"{piece!r} is not in:\n{self.text}"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project, outside CI."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAXGATE_PROFILE", "never")  # two seconds a red case; tests of profiles ask for them
    # A machine that runs two suites at once was seen to compile 100 ms more slowly; phases have tests of their own.
    monkeypatch.setattr("jaxgate.judge.phases.STORED_PHASE_POLICIES", ())
    return Project(pytester)
