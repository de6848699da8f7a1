"""Small projects in scratch folders, each a git repository, and jaxgate's commands in them as processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from attack import CannotRunError

DROPPED = ("CI", "GIT", "JAX", "JAXGATE", "NCCL", "NVIDIA", "PYTEST", "PYTHON", "XLA", "LIBTPU", "XDG")
"""Beginnings of variables that are of whoever runs this, and not of the project."""
NEUTRAL = {
    "GIT_AUTHOR_NAME": "attack",
    "GIT_AUTHOR_EMAIL": "attack@example.invalid",
    "GIT_COMMITTER_NAME": "attack",
    "GIT_COMMITTER_EMAIL": "attack@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "JAX_PLATFORMS": "cpu",
    "JAXGATE_PROFILE": "never",  # seconds for each red case, and no verdict
}
LIMIT_S = 600
COMMAND = (
    "import sys; from importlib.metadata import entry_points; "
    "(command,) = entry_points(group='console_scripts', name='jaxgate'); sys.exit(command.load()())"
)
BOUNDED = "import resource, sys; size = int(sys.argv.pop(1)); resource.setrlimit(resource.RLIMIT_AS, (size, size)); "
SCAFFOLD = {
    "pytest.ini": "[pytest]\n",
    "conftest.py": "",
    ".gitignore": "perf-artifacts/\n__pycache__/\n.benchmarks/\n.pytest_cache/\n*.so\n",
}


@dataclass(frozen=True)
class Ran:
    """A process that ended, or was ended (``code`` is ``None``)."""

    code: int | None
    text: str

    @property
    def last(self) -> str:
        """The last line that was printed."""
        return next((line for line in reversed(self.text.splitlines()) if line.strip()), "nothing was printed")


@dataclass(frozen=True)
class Gated(Ran):
    """A run of gates, with what it left for machines."""

    left: dict[str, Any] | None

    @property
    def results(self) -> dict[str, Any]:
        """What the run left; without that nothing was judged."""
        if self.left is None:
            raise CannotRunError(f"no results.json, exit {self.code}: {self.last}")
        return self.left

    @cached_property
    def case(self) -> dict[str, Any]:
        """The one case."""
        cases = self.results["cases"]
        if len(cases) != 1:
            raise CannotRunError(f"expected one case, found {len(cases)}, exit {self.code}: {self.last}")
        return dict(cases[0])

    @property
    def status(self) -> str:
        """The verdict of the one case."""
        return str(self.case["status"])

    @property
    def statuses(self) -> str:
        """The verdicts of all cases, each once."""
        return ", ".join(sorted({case["status"] for case in self.results["cases"]})) or "no case"

    @property
    def reason(self) -> str:
        """What is not the same in the one case, or why its time is as it is."""
        findings = [f"{each['name']} {each['detail'] or ''}".strip() for each in self.case["findings"]]
        return ", ".join(findings) or str(self.case["time"]["reason"])


class Project:
    """A folder with tests that gate, under git; jaxgate is attacked in the environment of ``python``."""

    def __init__(self, path: Path, python: str, environ: Mapping[str, str]) -> None:
        self.path, self._python, self.environ = path, python, dict(environ)

    def write(self, name: str, text: str) -> None:
        """Write a file; no old bytecode of it is left."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for cache in self.path.rglob("__pycache__"):
            shutil.rmtree(cache)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that is in a file once."""
        text = (self.path / name).read_text()
        if text.count(old) != 1:
            raise CannotRunError(f"expected {old!r} once in {name}, found it {text.count(old)} times")
        self.write(name, text.replace(old, new))

    def run(self, command: Sequence[str | Path], *, limit_s: float = LIMIT_S, **environ: str) -> Ran:
        """Run a command in the folder."""
        log = self.path.parent / f"{self.path.name}.log"
        with log.open("w+") as file:
            process = subprocess.Popen(
                command,
                cwd=self.path,
                env=self.environ | environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,  # so that its own processes end with it
            )
            try:
                code: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
            file.seek(0)
            return Ran(code, file.buffer.read().decode(errors="replace"))

    def git(self, *arguments: str) -> str:
        """What git answers."""
        ran = self.run(["git", *arguments])
        if ran.code:
            raise CannotRunError(f"git {arguments[0]}: {ran.last}")
        return ran.text.strip()

    def commit(self) -> None:
        """Commit everything that git does not ignore."""
        if not (self.path / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "one")

    def ignored(self) -> list[str]:
        """Files of the baselines that are in no commit."""
        return self.git("ls-files", "--others", "--", "baselines").split()

    def pytest(self, *arguments: str, **environ: str) -> Gated:
        """Run pytest."""
        left = self.path / "perf-artifacts" / "results.json"
        left.unlink(missing_ok=True)
        ran = self.run([self._python, "-m", "pytest", *arguments], **environ)
        return Gated(ran.code, ran.text, json.loads(left.read_text()) if left.exists() else None)

    def gate(self, *arguments: str, **environ: str) -> Gated:
        """Run pytest as CI does."""
        return self.pytest(*arguments, CI="true", **environ)

    def record(self, *arguments: str, **environ: str) -> None:
        """Record baselines, and commit them."""
        self.commit()
        ran = self.pytest(*arguments, "--perf-update", **environ)
        if ran.code or not list(self.path.glob("baselines/*/*/*.json")):
            raise CannotRunError(f"recording ended with exit {ran.code}: {ran.last}")
        self.commit()

    def control(self, *arguments: str, statuses: Sequence[str] = ("SAME",)) -> None:
        """Make sure that the project, as it is, passes: what is seen later comes from the change."""
        ran = self.gate(*arguments)
        if ran.code or ran.statuses not in statuses:
            raise CannotRunError(
                f"unchanged, expected {' or '.join(statuses)}, exit 0; found {ran.statuses}, exit {ran.code}: {ran.last}"
            )

    def jaxgate(self, *arguments: str, limit_s: float = 60, most_bytes: int = 0, **environ: str) -> Ran:
        """Run jaxgate's command, with so much memory at most where a number is given."""
        begin = (
            [self._python, "-c", BOUNDED + COMMAND, str(most_bytes)] if most_bytes else [self._python, "-c", COMMAND]
        )
        return self.run([*begin, *arguments], limit_s=limit_s, **environ)

    def baseline(self, case: str) -> Path:
        """The file of a case's baseline."""
        found = list(self.path.glob(f"baselines/*/{case}.json"))
        if len(found) != 1:
            raise CannotRunError(f"expected one baseline of {case}, found {len(found)}")
        return found[0]

    def edit_baseline(self, case: str, part: str, **changes: Any) -> None:
        """Change entries of a part of a case's baseline."""
        path = self.baseline(case)
        content = json.loads(path.read_text())
        content[part] |= changes
        path.write_text(json.dumps(content))


class Workshop:
    """Makes projects, each in a folder of its own; what several attacks record alike is recorded once."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        home = folder / "home"
        home.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
        self._environ = kept | NEUTRAL | {"HOME": str(home)}
        self._recorded: dict[tuple[object, ...], Project] = {}
        self._count = 0

    def _project(self) -> Project:
        self._count += 1
        return Project(self.folder / f"project-{self._count}", self.python, self._environ)

    def project(self, files: Mapping[str, str]) -> Project:
        """A new project with these files, and with the usual ones."""
        project = self._project()
        for name, text in (SCAFFOLD | dict(files)).items():
            project.write(name, text)
        return project

    def clone(self, project: Project) -> Project:
        """A fresh clone of a project."""
        new = self._project()
        project.git("clone", "-q", str(project.path), str(new.path))
        return new

    def recorded(
        self,
        files: Mapping[str, str],
        arguments: Sequence[str] = (),
        *,
        then: Sequence[str] = (),
        statuses: Sequence[str] = ("SAME",),
    ) -> Project:
        """A project whose baselines are recorded and committed, and which passes as it is, gated with ``then``."""
        asked = (*sorted(files.items()), *arguments, *then, *statuses)
        if asked not in self._recorded:
            project = self.project(files)
            project.record(*arguments)
            project.control(*then, statuses=statuses)
            self._recorded[asked] = project
        new = self._project()
        shutil.copytree(self._recorded[asked].path, new.path, symlinks=True)
        return new
