"""--perf-update=create and =refresh: what is recorded, what is judged, and what is told of it."""

import re
import subprocess

import pytest
from support.corpora import nightly
from support.git import commit
from support.projects import TWO

from jaxgate.processes import pytest_child
from jaxgate.settings import OTHER_SIDE, Update

WORSE = ("return x * 2", "return x @ jnp.ones((8, 8)) * x")


@pytest.fixture
def half(project, monkeypatch):
    """Two cases, of which only the first has a baseline, and is worse now."""
    monkeypatch.setenv("JAXGATE_BUDGET", "0")  # time is not what this is about
    project.write("test_model.py", TWO).record("-k", "first")
    project.edit("test_model.py", *WORSE)
    return project


@pytest.mark.parametrize(
    ("update", "new", "known"),
    [
        (Update.NOTHING, False, False),
        (Update.BOTH, True, True),
        (Update.CREATE, True, False),
        (Update.REFRESH, False, True),
        (Update.TRIM, False, False),
        (Update.REVIEW, False, False),
    ],
)
def test_what_a_mode_records(update, new, known):
    """Of a case without a baseline, and of one that has one."""
    assert (update.records(exists=False), update.records(exists=True)) == (new, known)


def test_a_recording_is_not_green_until_it_is_committed(half):
    """Exit code 0, as it was asked for; all outputs say what git does not have, and so does a later run under CI."""
    (half.path / ".gitignore").write_text("perf-artifacts/\n__pycache__/\n.benchmarks/\n")
    commit(half.path)
    result = half.run("-k", "second", "--perf-update=create", "--perf-strict")
    assert result.code == 0
    found = half.results()
    assert (found["green"], found["exit_status"], found["gate_exit"]) == (False, 0, 3)
    files = found["needs_commit"]
    assert [name.split("/")[1] for name in files if "second.json" not in name] == ["log", "programs"]
    assert any(name.endswith("/model/second.json") for name in files)
    assert not any("first.json" in name for name in files)
    result.shows("NEEDS COMMIT: 3 files are not in the last commit: baselines/")
    page = (half.path / "perf-artifacts/summary.md").read_text()
    assert page.startswith("## ⚠️ jaxgate: 1 of 1 case recorded, and the baselines are not committed\n\n1 CREATED on")
    assert "3 files of the baselines need a commit" in page
    later = half.run("-k", "second", "--perf-strict")
    assert (later.code, half.results()["green"], half.results()["needs_commit"]) == (1, False, files)
    assert half.results()["gate_exit"] == 3
    commit(half.path)
    half.run("-k", "second", "--perf-strict")
    found = half.results()
    assert (found["green"], found["gate_exit"], found["needs_commit"]) == (True, 0, [])


def test_a_refresh_removes_the_program_that_nothing_names(half):
    """In the same run, and only then: the store does not grow with refreshes, and another case keeps its own."""
    half.run("-k", "second", "--perf-update")
    store = half.path / "baselines/programs"
    before = {path.name for path in store.iterdir()}
    commit(half.path)
    result = half.run("-k", "first", "--perf-update=refresh")
    result.shows("Removed 1 program that no baseline names any more (", ".export.gz (removed)")
    after = {path.name for path in store.iterdir()}
    assert (len(before), len(after), len(before & after)) == (2, 2, 1)
    assert "Removed" not in half.run("--perf-update").text  # nothing changed


@nightly
def test_workers_that_refresh_at_once_leave_what_is_needed(half):
    """The controller removes what was replaced when all have written: both cases come to one program, and keep it."""
    half.run("-k", "second", "--perf-update")
    half.edit("test_model.py", "return x + 1", WORSE[1])
    assert half.run("-n", "2", "--perf-update=refresh").code == 0
    assert len(list((half.path / "baselines/programs").iterdir())) == 1
    assert half.run("--perf-strict").code == 0
    assert len([text for text in half.log() if re.search(r"refreshed `model/first` .*, `model/second`", text)]) == 1


def test_a_program_stays_while_a_baseline_cannot_be_read(half):
    """Of other hardware, too: it may be the one that names it."""
    other = half.path / "baselines/cpu-other-1-jax-0.10/model/first.json"
    other.parent.mkdir(parents=True)
    other.write_text("{")
    result = half.run("-k", "first", "--perf-update=refresh")
    assert result.code == 0
    result.shows("Programs that were replaced stay: baselines/cpu-other-1-jax-0.10/model/first.json is not JSON")
    assert len(list((half.path / "baselines/programs").iterdir())) == 2


def test_what_got_better_asks_for_a_refresh(half):
    """One line with the exact command, and no failure; the command is for these cases and these baselines only."""
    half.run("-k", "first", "--perf-update", "--perf-baselines", "kept")
    half.edit("test_model.py", WORSE[1], WORSE[0])
    result = half.run("-k", "first", "--perf-baselines", "kept")
    result.counts(passed=1, deselected=1)
    assert result.line("BETTER:") == (
        "BETTER: 1 case is better than the baseline; keep it: "
        "pytest 'test_model.py::test_first' --perf-baselines=kept --perf-update"
    )


def test_a_line_that_is_committed_cannot_record(project, monkeypatch):
    """A run that records is green whatever changed: that is typed, each time."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--perf-update")
    result = project.write("test_model.py", TWO).pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "expected it on the command line, found it in addopts or PYTEST_ADDOPTS" in result.stderr.str()


def test_a_recording_for_another_process_leaves_nothing_else(half, monkeypatch, tmp_path):
    """It is told to be one, leaves no pages, and above all does not empty the folder of the run that asked for it."""
    half.run("-k", "first")
    page = half.path / "perf-artifacts/results.json"
    before = page.read_bytes()
    seen = {}

    def run(command, *, env, **_):
        seen.update(env)
        return subprocess.CompletedProcess(command, 0, "", "")

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", run)
        patched.delenv("JAXGATE_MACHINE_HELD")
        side = pytest_child.Side(half.path, {"A": "b"}, "--option")
        pytest_child.record_selection(side, pytest_child.Selection((), "", ""), tmp_path)
    assert seen == {"A": "b", OTHER_SIDE: "1"}
    monkeypatch.setenv(OTHER_SIDE, "1")
    result = half.run("--perf-update", "--perf-baselines", str(tmp_path / "kept"))
    assert result.code == 0
    assert page.read_bytes() == before
    assert "NEEDS COMMIT" not in result.text
