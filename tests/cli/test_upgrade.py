"""``jaxgate upgrade``: what is whose among its arguments, and exit codes that never say yes without an answer."""

import json
import sys
from pathlib import Path

import pytest

from jaxgate.cli.main import main
from jaxgate.ext.upgrade.run import split_arguments, upgrade
from jaxgate.settings import RESULTS_INTO, UPGRADE_TO


@pytest.mark.parametrize(
    ("arguments", "items", "rest"),
    [
        (["jax==0.12.0.1"], ["jax==0.12.0.1"], []),
        (["jax==0.12", "xla_cpu_x=1", "-k", "scan"], ["jax==0.12", "xla_cpu_x=1"], ["-k", "scan"]),
        (["-k", "jax==0.12", "perf", "OMP_NUM_THREADS=1"], ["OMP_NUM_THREADS=1"], ["-k", "jax==0.12", "perf"]),
        (["jax"], [], ["jax"]),
        (["--perf-size=full"], [], ["--perf-size=full"]),
    ],
)
def test_requirements_and_settings_are_the_environments_and_all_else_is_pytests(arguments, items, rest):
    """Wherever they stand; what follows an option that takes a value is that value."""
    assert split_arguments(arguments) == (items, rest)


class Pytest:
    """Answers like a run of pytest."""

    def __init__(self, status, answer=None):
        self.status, self.answer = status, answer
        self.command, self.env = [], {}

    def __call__(self, command, *, env):
        self.command, self.env = command, env
        if self.answer is not None:
            Path(env[RESULTS_INTO]).write_text(json.dumps(self.answer))
        return self.status


@pytest.mark.parametrize(
    ("status", "answer", "code", "said"),
    [
        (0, {"exit_code": 0, "said": "yes: 2 cases"}, 0, "yes: 2 cases (exit code 0)"),
        (1, {"exit_code": 1, "said": "no: 2 cases"}, 1, "no: 2 cases (exit code 1)"),
        (2, {"exit_code": 2, "said": "not known"}, 2, "not known (exit code 2)"),
        (0, None, 2, "pytest ended with exit code 0 and compared nothing (exit code 2)"),
        (4, None, 2, "pytest ended with exit code 4 and compared nothing (exit code 2)"),
        (1, {"exit_code": 0, "said": "yes"}, 2, "pytest ended with exit code 1, though the answer was yes"),
        (0, {"said": "yes"}, 2, "compared nothing"),
    ],
)
def test_the_exit_code_is_that_of_an_answer(status, answer, code, said, capsys, monkeypatch, tmp_path):
    """Without one it is 2, whatever pytest ended with."""
    monkeypatch.chdir(tmp_path)
    run = Pytest(status, answer)
    assert upgrade(["jax==0.12", "-k", "scan"], run=run) == code
    assert said in capsys.readouterr().out
    assert run.command == [sys.executable, "-m", "pytest", "-k", "scan"]
    assert run.env[UPGRADE_TO] == "jax==0.12"


def test_an_interpreter_makes_the_environment_or_is_it(monkeypatch, tmp_path):
    """A command of the path is found; a folder counts from here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "venv").mkdir()
    run = Pytest(2)
    upgrade([], python="venv", run=run)
    assert run.env[UPGRADE_TO] == str(tmp_path / "venv")
    upgrade(["jax==0.12"], python=sys.executable, run=run)
    assert run.env[UPGRADE_TO] == f"jax==0.12 {sys.executable}"


def test_without_another_environment_nothing_is_run(capsys):
    assert main(["upgrade", "-k", "scan"]) == 2
    assert "expected what to upgrade to" in capsys.readouterr().err
    assert main(["upgrade", "jax==0.12", "--python", "no-such-python"]) == 2
    assert "found none: --python no-such-python" in capsys.readouterr().err
