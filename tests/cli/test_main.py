"""The command ``jaxgate``: light, honest about its arguments, and pytest's own exit code."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jaxgate.cli import main as cli


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Run in an empty folder, and note what would have become of this process."""
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: seen.append((path, arguments)))

    def run(*arguments):
        seen.clear()
        cli.main(arguments)
        ((path, found),) = seen
        assert (path, found[:3]) == (sys.executable, [sys.executable, "-m", "pytest"])
        return found[3:]

    return run


def test_help_imports_neither_jax_nor_pytest():
    """``jaxgate --help`` and that of a command, in a process of their own."""
    for arguments in (["--help"], ["calibrate", "--help"]):
        code = (
            f"import sys; from jaxgate.cli.main import main\ntry: main({arguments})\nexcept SystemExit as end: "
            "assert end.code == 0\nsys.exit(any(name in sys.modules for name in ('jax', 'pytest', 'numpy', 'pydantic')))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "calibrate" in done.stdout


def test_the_suite_is_the_default(command, tmp_path):
    """The folder perf where there is one, else what pytest itself would collect."""
    assert command("calibrate") == ["--perf-calibrate=20", "--benchmark-disable"]
    (tmp_path / "perf").mkdir()
    assert command("calibrate") == ["perf", "--perf-calibrate=20", "--benchmark-disable"]


def test_all_else_is_for_pytest(command, tmp_path):
    """In its order, options with and without a value; a path of one's own replaces the default."""
    for name in ("perf", "mine", "scan"):
        (tmp_path / name).mkdir()
    (tmp_path / "test_one.py").touch()
    common = ["--perf-calibrate=7", "--benchmark-disable"]
    assert command("calibrate", "--duels", "7", "-k", "scan", "-x") == ["perf", *common, "-k", "scan", "-x"]
    assert command("calibrate", "mine", "-q", "--duels=7") == [*common, "mine", "-q"]
    assert command("calibrate", "-q", "test_one.py::test_a[x y]", "--duels=7") == (
        [*common, "-q", "test_one.py::test_a[x y]"]
    )
    assert command("calibrate", "--duels=7", "--du", "3") == ["perf", *common, "--du", "3"]  # no abbreviations


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_number_that_makes_no_sense_is_refused(text, capsys):
    """Before anything is started: what was expected, what was found."""
    with pytest.raises(SystemExit) as end:
        cli.main(["calibrate", f"--duels={text}"])
    assert end.value.code == 2
    assert f"expected a number of duels, 1 or more, found '{text}'" in capsys.readouterr().err


def test_the_exit_code_is_pytests(tmp_path):
    """A test that fails, an argument that is wrong, nothing collected: passed on by the installed command's function."""
    (tmp_path / "test_red.py").write_text("def test_red():\n    assert False\n")
    (tmp_path / "test_green.py").write_text("def test_green():\n    pass\n")
    for arguments, code in (
        (["test_green.py"], 0),
        (["test_red.py"], 1),
        (["test_green.py", "--no-such-option"], 4),
        (["test_green.py", "-k", "nothing"], 5),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "jaxgate.cli.main", "calibrate", *arguments, "-p", "no:cacheprovider"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
