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


LONG = "a" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", LONG),
        ("report", LONG + "/results.json"),
        ("diff", LONG, "b"),
        ("baselines", f"--baselines={LONG}"),
        ("tensorboard", "--links", f"--logdir={LONG}"),
        ("history", f"--history={LONG}"),
        ("repro", "a", f"--baselines={LONG}"),
        ("bisect", "a/b", "--good=x", f"--with={LONG}"),
        ("upgrade", f"--python={LONG}"),
        ("gate", f"--perf-baselines={LONG}"),
        ("init", LONG),
    ],
    ids=lambda arguments: " ".join(arguments).replace(LONG, "LONG"),
)
def test_a_path_that_no_system_has_is_one_line(arguments, capsys, monkeypatch, tmp_path):
    """Its beginning and its length say which one it is; no traceback, and not all of it."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) in (1, 2)
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"jaxgate {arguments[0]}: ")
    assert "aaaaaaaa… (50" in told
    assert len(told) < 300


def test_what_may_be_long_goes_to_pytest(command):
    """A long argument that is no path, of an option that is pytest's, is none of ours to refuse."""
    assert command("calibrate", "--override-ini", f"addopts=-k {LONG}")[-1].endswith(LONG)


def test_other_errors_of_the_system_are_not_hidden(monkeypatch):
    """A pipe that was closed is no path: whoever started the command sees what was raised."""
    monkeypatch.setattr(cli, "doctor", lambda: (_ for _ in ()).throw(BrokenPipeError(32, "Broken pipe")))
    with pytest.raises(BrokenPipeError):
        cli.main(["doctor"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("record", "--why="),
        ("record", "--why", ""),
        ("comment", "--commit="),
        ("comment", "--artifacts="),
        ("baselines", "--baselines="),
        ("tensorboard", "--logdir="),
        ("upgrade", "jax==0.12", "--python="),
        ("history", "--history="),
        ("bisect", "a/b", "--good=x", "--bad="),
        ("repro", "a/b", "--about="),
        ("report", "--output="),
        ("report", ""),
    ],
    ids=" ".join,
)
def test_an_option_with_nothing_after_it_is_refused(arguments, capsys):
    """It would mean any commit, this folder, the default: something else than was typed."""
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert f"jaxgate {arguments[0]}: error: " in told
    assert "expected a value, found nothing; write " in told
    assert told.endswith(", or leave it out")


def test_nothing_to_copy_is_refused(capsys):
    """`--with` may be given several times, each with a path."""
    assert cli.main(["bisect", "a/b", "--good=x", "--with="]) == 2
    assert "expected a file or folder to copy, found none: --with" in capsys.readouterr().err
