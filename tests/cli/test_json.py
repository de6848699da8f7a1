"""``--json``: one object for each command, nothing else on stdout, and the keys that docs/assistants.md names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.git import commit
from support.paths import REPOSITORY

from jaxgate.cli import main as cli
from jaxgate.cli.console import answer, say, tell
from jaxgate.settings import RESULTS_INTO

ALWAYS = {"schema", "command", "exit_code", "error"}
PAGE = (REPOSITORY / "docs/assistants.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE))


def named(command):
    """The keys that the page names for a command, with words that stand for their values."""
    return set(re.findall(r"`(\w+)`", ROWS[command]))


@pytest.fixture
def told(capsys) -> Callable[..., dict[str, object]]:
    """Runs a command with ``--json``; gives its object, and looks at what all have."""

    def run(*arguments):
        code = cli.main([*arguments, "--json"])
        found = json.loads(capsys.readouterr().out)
        assert (found["schema"], found["command"], found["exit_code"]) == (1, arguments[0], code)
        assert (found["error"] is None) or code
        assert found.keys() - ALWAYS <= named(arguments[0])
        return found

    return run


def test_each_command_is_on_the_page_and_takes_it(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help-all"])
    commands = set(re.findall(r"^    (\w+)\s", capsys.readouterr().out, re.MULTILINE))
    assert commands == set(ROWS)
    for command in sorted(commands):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        assert "--json" in capsys.readouterr().out


def test_a_new_project(told, tmp_path, monkeypatch):
    """Files are written, nothing is asked, and what to do next is told."""
    monkeypatch.chdir(tmp_path)
    found = told("init")
    assert found["files"]["perf/test_first.py"] == "wrote"
    assert found["next"][0].startswith("pytest perf --perf-update")
    assert set(told("init")["files"].values()) == {"is there"}


def test_what_is_looked_at_and_what_gates(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    remarks = told("doctor")["remarks"]
    assert {"packages", "git"} <= {one["about"] for one in remarks}
    assert {one["level"] for one in remarks} <= {"ok", "note", "bad"}
    rules = told("policy")
    assert next(rule for rule in rules["facts"] if rule["name"] == "temp_bytes")["better"] == "lower"
    assert {rule["name"] for rule in rules["phases"]} >= {"trace_ns", "compile_ns"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("baselines",), "expected a folder baselines, found none"),
        (("baselines", "x"), "unknown arguments x"),
        (("bisect", "a/b"), "expected a case and a good side"),
        (("check", "begin"), "expected the variables of a job"),
        (("diff", "a", "b"), "expected results.json"),
        (("explain",), "expected the results.json of a run"),
        (("history",), "expected runs"),
        (("merge", "x"), "expected what parts of a run left"),
        (("report",), "expected the results.json of a run"),
        (("repro", "a/b", "--about=x"), "are reduced: add --reduce"),
        (("store",), "expected perf_programs"),
        (("tensorboard",), "expected profiles under perf-artifacts"),
        (("upgrade",), "expected what to upgrade to"),
        (("record", "--why=x"), "expected a git checkout"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_refused_is_told(told, tmp_path, monkeypatch, arguments, error):
    """The reason is in the object; the exit code is what it is without."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_TOKEN", "JAXGATE_HISTORY", "JAXGATE_BASELINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    found = told(*arguments)
    assert found["exit_code"]
    assert error in found["error"] or error.split(": ")[-1] in found["error"]


def test_what_runs_left(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no result" in told("comment")["text"]
    profile = tmp_path / "perf-artifacts/scan/rnn/now/plugins/profile/2026/host.xplane.pb"
    profile.parent.mkdir(parents=True)
    profile.touch()
    links = told("tensorboard")["links"]
    assert links["scan/rnn"]["now"].startswith("http://127.0.0.1:6006/?run=scan/rnn/now")
    (tmp_path / "none.json").write_text("{}")
    found = told("history", "--history", "h.sqlite", "--import", "none.json")
    assert (found["added"], found["known"], found["unread"], found["exit_code"]) == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("ended", "wanted"),
    [({"exit_code": 1, "said": "no", "answer": "no", "groups": []}, (1, "no", "no")), (None, (2, None, None))],
    ids=["answered", "broken"],
)
def test_an_upgrade(told, monkeypatch, ended, wanted):
    """The answer with its groups; a run that left none has told nothing but why."""

    def run(_, env=None, **__):
        if ended is not None:
            Path(env[RESULTS_INTO]).write_text(json.dumps({"schema": 1, **ended}), encoding="utf-8")
        return SimpleNamespace(returncode=wanted[0])

    monkeypatch.setattr(subprocess, "run", run)
    found = told("upgrade", "jax==0.12")
    assert (found["exit_code"], found.get("said"), found.get("answer")) == wanted
    assert found["why"]


def test_pytest_prints_elsewhere(tmp_path):
    """A real run: what pytest prints is on stderr, and stdout is one object."""
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): print('seen')\n")
    commit(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "jaxgate.cli.main", "gate", "--json", "-s", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    found = json.loads(done.stdout)
    assert found["exit_code"] == done.returncode == 2
    assert "seen" in done.stderr
    assert "jaxgate gate: " in done.stderr
    assert found["why"]


def test_who_does_not_ask_is_told_nothing(capsys):
    """Keys of one command are not those of the next, and what is said goes where it always does."""
    tell(case="a/b")
    say("for people")
    assert capsys.readouterr().out == "for people\n"
    assert answer("explain", lambda: tell(case="c/d") or say("aside") or 3) == 3
    seen = capsys.readouterr()
    assert json.loads(seen.out) == {"schema": 1, "command": "explain", "exit_code": 3, "error": None, "case": "c/d"}
    assert seen.err == "aside\n"
    tell(case="e/f")
    assert answer("explain", lambda: 0) == 0
    assert "case" not in json.loads(capsys.readouterr().out)


def test_what_ends_a_command_ends_it(capsys):
    """An error that nobody expected is no object; stdout is as it was."""
    with pytest.raises(ZeroDivisionError):
        answer("explain", lambda: 1 // 0)
    say("for people")
    assert capsys.readouterr().out == "for people\n"
