"""A project of its own for tests of the plugin: the catalogue or a test file, run through the real pytest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import projects
from support.lines import line_here
from support.paths import REPOSITORY
from support.processes import outside_variables

from jaxgate.model.machine import folder_name, release_line, split_folder_name

if TYPE_CHECKING:
    from jaxgate.processes.child import Finished

RECORDED: dict[tuple[object, ...], dict[str, bytes]] = {}
"""Baselines that were recorded in this process, by the file of tests that asked, its instruments and its project's files."""


class GivenInstruments:
    """A plugin that gives a run the instruments of its test."""

    def __init__(self, **instruments: Any) -> None:
        self.instruments = instruments

    def pytest_configure(self, config: pytest.Config) -> None:
        """Hand them over before the first gate."""
        from jaxgate.engine.instruments import Instruments
        from jaxgate.plugin.stash import INSTRUMENTS

        config.stash[INSTRUMENTS] = Instruments(**self.instruments)


class Project:
    """A folder with tests that gate, run in this process: JAX is imported once."""

    def __init__(self, pytester: pytest.Pytester, asked_by: Path) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.instruments: dict[str, Any] = {}  # what a run looks at the world with, where it is not the real thing
        self.instruments_there: dict[str, Any] = {}  # the same of runs that stand for other processes
        self._asked_by = asked_by
        pytester.makepyprojecttoml(projects.SETTINGS)

    def write(self, name: str, text: str) -> Project:
        """Write a file of the project; a changed test must not run from an old cache of itself."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for cache in self.path.rglob("__pycache__"):
            shutil.rmtree(cache)
        return self

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text in a file; the text must be there once."""
        text = (self.path / name).read_text()
        assert text.count(old) == 1, f"expected {old!r} once in {name}, found it {text.count(old)} times"
        self.write(name, text.replace(old, new))

    def catalogue(self) -> None:
        """Copy the suite's own workloads and tests."""
        for folder in ("workloads", "perf"):
            shutil.copytree(REPOSITORY / folder, self.path / folder, ignore=shutil.ignore_patterns("__pycache__"))

    def with_memory(self, *arguments: str) -> pytest.RunResult:
        """Run pytest with its cache, as it is."""
        return self.pytester.runpytest_inprocess(*arguments, plugins=[GivenInstruments(**self.instruments)])

    def run_here(self, command: Sequence[str], *, folder: Path, variables: Mapping[str, str]) -> Finished:
        """Run pytest in this process, as a command would in one of its own whose variables alone are others."""
        from jaxgate.processes.child import Finished
        from jaxgate.settings import NOT_FROM, ONLY_FROM

        own = {n: m for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(str(self.path))}
        with pytest.MonkeyPatch.context() as patch:
            for name in own:
                patch.delitem(sys.modules, name)
            for name in {*os.environ} - {*variables}:
                patch.delenv(name)
            for name in {*variables} - {NOT_FROM, ONLY_FROM}:
                patch.setenv(name, variables[name])
            patch.chdir(folder)
            given = [GivenInstruments(**self.instruments_there)] if self.instruments_there else []
            done = self.pytester.runpytest_inprocess(*command[3:], plugins=given)
        return Finished(status=int(done.ret), stdout=done.stdout.str(), stderr=done.stderr.str())

    def records_here(self) -> None:
        """Let what fresh processes of pytest would record be recorded in this one: they take seconds each."""
        from jaxgate.processes.pytest_child import record_selection

        self.instruments["record_other"] = partial(record_selection, run=self.run_here)

    def alone(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run Python in a process of its own, as somebody at a terminal would; it is over within two minutes."""
        variables = outside_variables(JAXGATE_OPINION="0", JAXGATE_HISTORY="none") | environ
        command, run = [sys.executable, *arguments], subprocess.run
        return run(command, cwd=self.path, env=variables, capture_output=True, text=True, check=False, timeout=120)

    def run(self, *arguments: str) -> Result:
        """Run pytest; modules of the project are imported afresh."""
        for name in [name for name in sys.modules if name.split(".")[0] in ("workloads", "helpers")]:
            del sys.modules[name]
        plugins = ("-p", "no:cacheprovider", *projects.NO_OTHERS)
        given = [GivenInstruments(**self.instruments)] if self.instruments else []
        return Result(self.pytester.runpytest_inprocess(*plugins, *arguments, plugins=given))

    def record(self, *arguments: str, alone: bool = False) -> Project:
        """Record the baselines; they are copied if a test of the same file has recorded the same project before.

        ``arguments`` say which, as those of pytest do.

        ``alone`` records in a process of its own, which was told nothing.
        """
        asked = (self._asked_by, arguments, *sorted(self.instruments), *sorted(self._files(self.path).items()))
        folder = self.path / "baselines"
        if asked not in RECORDED:
            if alone:
                done = self.alone("-m", "pytest", "-p", "no:cacheprovider", "--perf-update")
                code, text = done.returncode, done.stdout
            else:
                result = self.run(*arguments, "--perf-update")
                code, text = result.code, result.text
            assert code == 0, text
            RECORDED[asked] = self._files(folder)
        for name, content in RECORDED[asked].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return self

    def _files(self, folder: Path) -> dict[str, bytes]:
        """What lies below a folder: relative path to content."""
        paths = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    def baselines(self) -> dict[str, bytes]:
        """The stored baselines: relative path to content."""
        root = self.path / "baselines"
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.json"))}

    def baseline(self, case: str = "model/step") -> Path:
        """The file of a case's baseline."""
        (path,) = self.path.glob(f"baselines/*/{case}.json")
        return path

    def baseline_of(self, line: str, case: str = "model/step") -> Path:
        """The same of one release line of jax."""
        (path,) = self.path.glob(f"baselines/*-jax-{line}/{case}.json")
        return path

    def edit_baseline(self, case: str = "model/step", **changes: Any) -> None:
        """Change the baseline of a case: a mapping is merged into what is there."""
        path = self.baseline(case)
        content = json.loads(path.read_text())
        for key, new in changes.items():
            content[key] = content[key] | new if isinstance(new, dict) else new
        path.write_text(json.dumps(content))

    def lend(self, case: str = "model/step") -> Path:
        """Let a baseline be one of other hardware; gives its file."""
        self.edit_baseline(case, hardware={"device_kind": "Other"})
        return self._move(case, f"cpu-other-1-jax-{line_here()}")

    def date_back(self, case: str = "model/step", jax: str = "0.9.1") -> Path:
        """Let a baseline be one of another jax; gives its file."""
        self.edit_baseline(case, environment={"jax": jax})
        slug, _ = split_folder_name(self.baseline(case).parents[1].name)
        return self._move(case, folder_name(slug, release_line(jax)))

    def _move(self, case: str, folder: str) -> Path:
        own, other = self.baseline(case), self.path / "baselines" / folder / f"{case}.json"
        other.parent.mkdir(parents=True, exist_ok=True)
        return own.rename(other)

    def log(self) -> list[str]:
        """The entries of the baselines' log."""
        return [path.read_text() for path in (self.path / "baselines/log").glob("*.md")]

    def results(self) -> dict[str, Any]:
        """What the last run left for machines."""
        return json.loads((self.path / "perf-artifacts/results.json").read_text())


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
