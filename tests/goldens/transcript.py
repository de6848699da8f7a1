"""Play a scenario and write down what a user sees of it: commands, exit codes, texts, and the files a run leaves."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import jax
import pytest
from goldens.neutral import neutral, neutral_json
from support.fakes import Lab, device_kind, hardware_slug, import_everything
from support.lines import line_here
from support.projects import NO_OTHERS

PLAIN = ("--no-header", *NO_OTHERS)
LIMIT_S = 120
TESTS = Path(__file__).resolve().parents[1]
Steps = Callable[["Transcript"], None]
import_everything()
SCENARIOS: dict[str, Steps] = {}
READ = ("summary.md", "report.md")
"""What a run leaves in its folder that people read."""
ALL = ("results.json", *READ)
"""What machines read, too: once for each verdict and each kind of run."""
_RECORDED: dict[tuple[str, ...], Path] = {}
"""Baselines of projects that were recorded already, by what was recorded."""


def scenario(steps: Steps) -> Steps:
    """Play these steps under the name of their function."""
    assert steps.__name__ not in SCENARIOS, f"two scenarios are called {steps.__name__}"
    SCENARIOS[steps.__name__] = steps
    return steps


def machine_names(project: Path) -> dict[str, str]:
    """The texts of this machine, and what stands for them."""
    slug, kind = hardware_slug(), device_kind()
    libraries = Path(jax.__file__).parents[1]
    return {
        str(project): "<project>",
        str(libraries): "<libraries>",
        str(TESTS.parent): "<repository>",
        sys.executable: "<python>",
        slug: "cpu-here-1",
        f"-jax-{line_here()}": "-jax-here",
        slug.rpartition("-")[0]: "cpu-here",
        kind: "Processor Here",
    }


@dataclass
class Transcript:
    """A project, and what was seen of its runs."""

    project: Any  # writes files and runs pytest
    lab: Lab  # what clocks, machine and fresh processes say
    patch: pytest.MonkeyPatch  # sets environment variables
    parts: list[str] = field(default_factory=list)  # what was seen, in order
    names: dict[str, str] = field(default_factory=dict)  # what stands for texts that are others each time

    @property
    def path(self) -> Path:
        """The project's folder."""
        return self.project.path

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        self.project.write(name, text)

    def edit(self, old: str, new: str, name: str = "test_model.py") -> None:
        """Replace text that is in a file once."""
        self.project.edit(name, old, new)

    def recorded(self, model: str, *options: str) -> None:
        """Write a model and have its baselines; recorded once for all scenarios that begin like this."""
        self.write("test_model.py", model)
        key = (model, *options)
        if key not in _RECORDED:
            result = self.pytest("--perf-update", *options)
            assert result.code == 0, result.text
            _RECORDED[key] = Path(tempfile.mkdtemp(prefix="goldens-")) / "baselines"
            shutil.copytree(self.path / "baselines", _RECORDED[key])
            shutil.rmtree(self.path / "perf-artifacts")
        else:
            shutil.copytree(_RECORDED[key], self.path / "baselines")

    def pytest(self, *options: str) -> Any:
        """Run pytest in this process, and write nothing down."""
        return self.project.run(*PLAIN, *options)

    def run_alone(self, *commands: tuple[str, ...], **environ: str) -> None:
        """Run pytest in processes of their own, all at once."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "XLA_FLAGS"))}
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "pytest", *PLAIN, "-p", "no:cacheprovider", "--benchmark-quiet", *command],
                cwd=self.path,
                env=kept | environ | {"JAX_PLATFORMS": "cpu"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for command in commands
        ]
        try:
            texts = [process.communicate(timeout=LIMIT_S)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        for command, process, text in zip(commands, processes, texts, strict=True):
            self.say(f"$ pytest {' '.join(command)}", f"exit code {process.returncode}", text)

    def fix_clocks_of_processes(self) -> None:
        """Let the processes that runs start have the clocks of ``Lab``, too."""
        head = f"import sys\nsys.path.append({str(TESTS)!r})\nfrom support.fakes import in_a_process_of_its_own\n"
        call = f"\ndef pytest_configure(config):\n    in_a_process_of_its_own(config, {os.getpid()})\n"
        self.write("conftest.py", head + call)

    def run(self, *options: str, files: Sequence[str] = READ, table: bool = False) -> None:
        """Run pytest, and write down what it printed and the files it left.

        Args:
            options: Those of the command.
            files: Which of the files in its folder.
            table: The table of pytest-benchmark, too.
        """
        shutil.rmtree(self.path / "perf-artifacts", ignore_errors=True)
        result = self.pytest(*(() if table else ("--benchmark-quiet",)), *options)
        self.say(f"$ pytest {' '.join(options)}".rstrip(), f"exit code {result.code}", result.text)
        for name in files:
            for path in sorted((self.path / "perf-artifacts").rglob(name)):
                self.show(path.relative_to(self.path).as_posix())

    def jaxgate(self, *arguments: str) -> None:
        """Run the command ``jaxgate`` in this process."""
        (command,) = entry_points(group="console_scripts", name="jaxgate")
        out = io.StringIO()
        with contextlib.chdir(self.path), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = command.load()(arguments)
            except SystemExit as end:
                code = end.code
        text = out.getvalue()
        if arguments[:1] == ("baselines",):  # columns are as wide as the names of releases
            text = re.sub(r"(?<=\S)  +", "  ", text)
        self.say(f"$ jaxgate {' '.join(arguments)}".rstrip(), f"exit code {code}", text)

    def gate(self, *arguments: str) -> None:
        """Run ``jaxgate gate`` in a process of its own, which starts pytest."""
        command = [str(Path(sys.executable).with_name("jaxgate")), "gate", *arguments]
        done = subprocess.run(
            [*command, *PLAIN, "-p", "no:cacheprovider", "--benchmark-quiet"],
            cwd=self.path,
            env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        self.say(f"$ jaxgate gate {' '.join(arguments)}", f"exit code {done.returncode}", done.stdout + done.stderr)

    def show(self, name: str) -> None:
        """Write down a file of the project; of several that match, each, in the order of their texts."""
        found = sorted(self.path.glob(name), key=lambda path: path.read_text())
        assert found, f"the project has no {name}"
        for path in found:
            text = path.read_text()
            shown = neutral_json(text, self._names) if path.suffix == ".json" else text
            self.say(f"# {path.relative_to(self.path)}", shown)

    def tree(self, folder: str) -> None:
        """Write down which files a folder has."""
        files = [path for path in (self.path / folder).rglob("*") if path.is_file()]
        self.say(f"# files of {folder}", *sorted(str(path.relative_to(self.path)) for path in files))

    @property
    def text(self) -> str:
        """All of it, the same on every machine."""
        return "\n".join(self.parts)

    def stands_for(self, text: str, name: str) -> None:
        """Let a name stand for a text that is another one each time."""
        self.names[text] = name

    @property
    def _names(self) -> dict[str, str]:
        return machine_names(self.path) | self.names

    def say(self, *lines: str) -> None:
        """Write down some lines."""
        self.parts.append(neutral("\n".join(lines).rstrip() + "\n", self._names))


def settle_environment(patch: pytest.MonkeyPatch) -> None:
    """Take away what a machine of CI sets, and fix the width of a terminal."""
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "JAXGATE_", "CI", "PYTEST_ADDOPTS"))]:
        patch.delenv(name)
    patch.setenv("JAXGATE_MACHINE_HELD", "tests")
    patch.setenv("JAXGATE_OPINION", "0")  # a process more for each run
    patch.setenv("JAXGATE_HISTORY", "none")  # who tests it looks at what is remembered
    patch.setenv("JAXGATE_PROFILE", "never")
    patch.setenv("COLUMNS", "120")
