"""The command ``jaxgate``: light, honest about its arguments, and pytest's own exit code."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from jaxgate.cli import main as cli


def test_help_imports_neither_jax_nor_pytest():
    """``jaxgate --help`` and that of a command, in a process of their own."""
    for arguments in (["--help"], ["upgrade", "--help"]):
        code = (
            f"import sys; from jaxgate.cli.main import main\ntry: main({arguments})\nexcept SystemExit as end: "
            "assert end.code == 0\nsys.exit(any(name in sys.modules for name in ('jax', 'pytest', 'numpy', 'pydantic')))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "upgrade" in done.stdout


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


def test_what_may_be_long_goes_to_pytest(monkeypatch, tmp_path):
    """A long argument that is no path, of an option that is pytest's, is none of ours to refuse."""
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: seen.append(command) or SimpleNamespace(returncode=4))
    cli.main(["upgrade", "jax==0.12", "--override-ini", f"addopts=-k {LONG}"])
    assert seen[0][-2:] == ["--override-ini", f"addopts=-k {LONG}"]


def test_other_errors_of_the_system_are_not_hidden(monkeypatch):
    """A pipe of a process that was started is no path: whoever started the command sees what was raised."""
    monkeypatch.setattr(
        "jaxgate.ext.doctor.command.doctor", lambda: (_ for _ in ()).throw(BrokenPipeError(32, "Broken pipe"))
    )
    with pytest.raises(BrokenPipeError):
        cli.main(["doctor"])


@pytest.mark.parametrize("command", [("policy",), ("baselines", "--json")])
def test_a_reader_that_has_enough_is_no_error(command):
    """As of `jaxgate … | head -1`: nothing is said of it, of a long answer or a short one."""
    reader, writer = os.pipe()
    os.close(reader)
    run = [sys.executable, "-m", "jaxgate.cli.main", *command]
    with os.fdopen(writer, "w") as unread:
        done = subprocess.run(run, stdout=unread, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


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
