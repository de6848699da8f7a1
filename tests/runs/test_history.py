"""Whole runs and the history: each that judges or records is added once, and nothing about that changes a verdict."""

from __future__ import annotations

import os
import shlex
import sqlite3
from pathlib import Path

import pytest
from support.corpora import nightly
from support.git import commit
from support.histories import runs_of
from support.projects import model

from jaxgate.cli.main import main
from jaxgate.ext.history.model import HISTORY_PLACE
from jaxgate.ext.history.store import HistoryStore, find_place
from jaxgate.plugin.options.table import HISTORY

MODEL = model("jnp.ones(64)", step="jnp.tanh(x)", other="jnp.tanh(x)")
MORE = ("def step(x):\n    return jnp.tanh(x)", "def step(x):\n    return jnp.tanh(x), x * 2")
NOT_ADDED = "jaxgate: the run was not added to the history: "
PASSWORD = "hunter2"


@pytest.fixture
def written(project, monkeypatch):
    """Two cases, with a history where it is by default."""
    monkeypatch.setenv("JAXGATE_BUDGET", "0")  # time is not what this is about
    monkeypatch.delenv("JAXGATE_HISTORY")
    return project.write("test_model.py", MODEL)


@pytest.fixture
def recorded(written, monkeypatch):
    """The same, recorded; nothing of that is in the history."""
    with monkeypatch.context() as patch:
        patch.setenv("JAXGATE_HISTORY", "none")
        return written.record()


def history(project, place=HISTORY_PLACE):
    """The runs of a project's history, each with its points."""
    store = HistoryStore(find_place(place, project.path))
    points = [point for case in dict.fromkeys(c.case for c in store.cases()) for point in store.points(case)]
    return [(run, [point for point in points if point.run == run.run]) for run in runs_of(store)]


def test_the_default_is_said_where_no_room_is_loaded():
    """The table of options may not import the model."""
    assert HISTORY.default == HISTORY_PLACE


def test_runs_that_record_and_judge_are_remembered(written):
    """A recording, a green run, a red one and a refresh: verdicts, facts, what each was held against."""
    commit(written.path)
    assert written.run("--perf-update").code == 0
    assert written.run().code == 0
    written.edit("test_model.py", *MORE)
    assert written.run().code == 1
    assert written.run("--perf-update=refresh", "-k", "step").code == 0
    (_, first), (green, second), (red, third), (_, fourth) = history(written)
    assert [(p.case, p.recorded, p.baseline) for p in first] == [
        ("model/other", "created", None),
        ("model/step", "created", None),
    ]
    assert [(p.status, p.fails) for p in second] == [("SAME", False), ("SAME", False)]
    assert (green.green, green.gate_exit, red.green, red.gate_exit) == (True, 0, False, 1)
    assert len(green.commit) == 40
    step = third[1]
    assert (step.status, step.fails, step.baseline.folder) == ("REGRESSED", True, step.folder)
    assert (second[1].figures["output_bytes"], step.figures["output_bytes"]) == (256, 528)
    assert second[1].program != step.program
    (refreshed,) = fourth
    assert (refreshed.case, refreshed.recorded) == ("model/step", "refreshed")
    assert refreshed.baseline.program == second[1].program  # the one that was replaced
    assert (written.path / ".jaxgate/.gitignore").read_text() == "*\n"


@nightly
def test_workers_add_the_run_once(recorded):
    """From the controller, with the cases of all workers."""
    recorded.run("-n", "2").counts(passed=2)
    ((_, points),) = history(recorded)
    assert [point.case for point in points] == ["model/other", "model/step"]


def test_what_is_compared_with_elsewhere_says_so(recorded):
    """Its ratio is no step from the stored baselines; the other side adds nothing."""
    commit(recorded.path)
    recorded.records_here()
    recorded.run("--perf-against", "HEAD").counts(passed=2)
    ((run, points),) = history(recorded)
    assert run.elsewhere == f"--perf-against {run.commit[:10]}"
    assert {point.elsewhere for point in points} == {run.elsewhere}


def test_a_run_that_judges_nothing_or_for_another_process_adds_nothing(recorded, monkeypatch):
    """A plan, a collection, no case, no history; a fresh process that repeats a case, the other side of a comparison."""
    for arguments in (("--perf-plan",), ("--collect-only",), ("-k", "nothing"), ("-o", "perf_history=none")):
        recorded.run(*arguments)
    monkeypatch.setenv("JAXGATE_AS_MEASURED", "1")
    assert recorded.run().code == 0
    monkeypatch.delenv("JAXGATE_AS_MEASURED")
    monkeypatch.setenv("JAXGATE_OTHER_SIDE", "1")
    assert recorded.run("--perf-update").code == 0
    assert not (recorded.path / ".jaxgate").exists()


def test_the_place_can_be_chosen(recorded, monkeypatch):
    assert recorded.run("-o", "perf_history=kept/runs.sqlite").code == 0
    monkeypatch.setenv("JAXGATE_HISTORY", str(recorded.path / "kept/runs.sqlite"))
    assert recorded.run().code == 0
    assert len(history(recorded, "kept/runs.sqlite")) == 2
    assert not (recorded.path / ".jaxgate").exists()


def broken(file: Path, how: str) -> None:
    """Make a history that nothing can be added to."""
    file.parent.mkdir()
    if how == "no database":
        file.write_text("something else, and more of it than a header of SQLite has: " * 5)
    else:
        connection = sqlite3.connect(file)
        connection.execute("CREATE TABLE jaxgate_runs (id INTEGER)")
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
        connection.close()


@pytest.mark.parametrize(
    ("how", "says", "changed"),
    [("no database", "file is not a database", False), ("newer", "expected a history of schema 1, found 99", True)],
    ids=["green", "red"],
)
def test_a_history_that_cannot_be_written_changes_no_verdict(recorded, monkeypatch, how, says, changed):
    """One line says why, and how to add it later; exit code and results are those of the run."""
    if changed:
        recorded.edit("test_model.py", *MORE)
    broken(recorded.path / HISTORY_PLACE, how)
    result = recorded.run()
    assert result.code == int(changed)
    assert says in result.line(NOT_ADDED)
    assert result.text.count(NOT_ADDED) == 1
    results = recorded.results()
    assert (results["problems"], results["gate_exit"]) == ([], int(changed))
    command = result.line(NOT_ADDED).partition("; add it later: jaxgate ")[2]
    assert command == "history --import perf-artifacts/results.json"
    (recorded.path / HISTORY_PLACE).unlink()
    monkeypatch.chdir(recorded.path)
    assert main(shlex.split(command)) == 0
    ((run, points),) = history(recorded)
    assert (run.run, run.moment, run.jaxgate, len(points)) == (*map(results.get, ("run", "moment", "jaxgate")), 2)


def test_a_url_in_place_of_a_path_changes_no_verdict_and_keeps_its_password(recorded, monkeypatch, tmp_path):
    """The password is in nothing that was printed or written."""
    monkeypatch.setenv("JAXGATE_HISTORY", f"postgresql://me:{PASSWORD}@127.0.0.1:1/runs?sslpassword={PASSWORD}")
    recorded.edit("test_model.py", *MORE)
    result = recorded.run("-vv", "--junit-xml=junit.xml", "--benchmark-json=rows.json", "--showlocals")
    assert result.code == 1
    assert "expected the path of a file, or none, found a URL, postgresql://…" in result.line(NOT_ADDED)
    assert PASSWORD not in result.text
    for file in recorded.path.rglob("*"):
        if file.is_file():
            assert PASSWORD.encode() not in file.read_bytes(), file


def test_a_revision_of_a_search_is_no_event_of_today(recorded, tmp_path):
    """What ``jaxgate bisect`` judges of the past is a whole run of pytest, and adds nothing."""
    from jaxgate.processes.pytest_child import Side, judge_test

    side = Side(recorded.path, {}, "jaxgate bisect")
    found = judge_test(side, "test_model.py::test_step", (), tmp_path, run=in_this_process(recorded))
    assert [case["status"] for case in found["cases"]] == ["SAME"]
    assert not (recorded.path / ".jaxgate").exists()


def in_this_process(project):
    """Runs a command of pytest here, without the option of this test's own that would keep it from remembering."""

    def run(command, *, folder, variables):
        return project.run_here(command, folder=folder, variables=dict(os.environ) | dict(variables))

    return run
