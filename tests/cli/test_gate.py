"""``jaxgate gate``, ``record`` and ``comment``: what they decide; ``test_rehearsal.py`` runs them."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest
from support.git import commit, git

from jaxgate.cli import record as records
from jaxgate.cli.comment import comment
from jaxgate.cli.gate import gate
from jaxgate.cli.pytest_arguments import baselines_folder, divided, platform, suite, value_of
from jaxgate.cli.record import record
from jaxgate.model.decision import Status
from jaxgate.model.outcome import GateExit, Outcome
from jaxgate.model.verdict import TimeVerdict, Verdict
from jaxgate.observe.machine.load import MachineState
from jaxgate.report.comment import MARK, shortened
from jaxgate.settings import RESULTS_INTO


def a_verdict(**about):
    """A verdict with nothing but its end."""
    time = TimeVerdict(status=Status.SAME, reason="")
    return Verdict(**{"hardware": None, "findings": (), "time": time, **about})


def outcome(*statuses, **about):
    """A run with a case of each status."""
    good = {Status.SAME, Status.UNDECIDED, Status.IMPROVED}
    verdicts = tuple(
        a_verdict(case=f"model/{number}", status=status, fails=status not in good)
        for number, status in enumerate(statuses)
    )
    return Outcome(verdicts=verdicts, tests={}, texts={}, **about)


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (outcome(Status.SAME, Status.UNDECIDED), GateExit.FINE),
        (outcome(Status.SAME, Status.REGRESSED, exit_status=1), GateExit.REGRESSION),
        (outcome(Status.INVALID, exit_status=1), GateExit.REGRESSION),
        (outcome(Status.RESOURCE_EXHAUSTED, exit_status=1), GateExit.REGRESSION),
        (outcome(Status.NO_BASELINE, Status.SAME, exit_status=1), GateExit.MISSING),
        (outcome(Status.STALE_BASELINE, Status.NO_BASELINE, exit_status=1), GateExit.MISSING),
        (outcome(Status.NO_BASELINE, Status.SLOWER, exit_status=1), GateExit.REGRESSION),
        (outcome(Status.NO_BASELINE, exit_status=2, not_judged=("a",)), GateExit.BROKEN),
        (outcome(Status.SAME, exit_status=1), GateExit.BROKEN),
        (outcome(Status.SAME, not_judged=("a",)), GateExit.BROKEN),
        (outcome(Status.SAME, exit_status=2, unfit=("too little",)), GateExit.BROKEN),
        (outcome(Status.REGRESSED, exit_status=2, not_judged=("a",)), GateExit.REGRESSION),
        (outcome(Status.SAME, exit_status=1, problems=("an orphan",)), GateExit.REGRESSION),
        (outcome(), GateExit.BROKEN),
        (outcome(Status.SAME, needs_commit=("baselines/a",)), GateExit.MISSING),
        (outcome(Status.REGRESSED, exit_status=1, needs_commit=("baselines/a",)), GateExit.REGRESSION),
        (outcome(Status.SAME, not_judged=("a",), needs_commit=("baselines/a",)), GateExit.BROKEN),
    ],
)
def test_the_exit_code_says_what_a_pipeline_can_do(run, code):
    """A regression that was seen stands; nothing that was not judged is fine."""
    assert run.gate_exit is code


def test_a_machine_that_is_accused_is_unfit():
    verdict = a_verdict(case="model/step", status=Status.INVALID, fails=True, accuses_machine=True)
    assert Outcome(verdicts=(verdict,), tests={}, texts={}, exit_status=2).gate_exit is GateExit.BROKEN


@pytest.fixture
def played(monkeypatch, tmp_path):
    """A project in which pytest is only asked for; returns the gate, the commands, and what to leave as results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    commands, left = [], {"status": 0, "results": None}

    def run(command, environ, limit_s):
        commands.append((list(command[3:]), limit_s))
        if left["results"] is not None:
            from pathlib import Path

            Path(environ["JAXGATE_RESULTS_INTO"]).write_text(json.dumps(left["results"]))
        return left["status"]

    return partial(gate, run=run), commands, left


def results(code, **about):
    """What a run leaves."""
    return {
        "gate_exit": code,
        "cases": [{"fails": False}],
        "unfit": [],
        "undecided_changed": [],
        "problems": [],
        "not_judged": [],
        **about,
    }


def stored(path, slug):
    """Put a baseline there."""
    (path / "baselines" / slug / "model").mkdir(parents=True)
    (path / "baselines" / slug / "model" / "step.json").write_text("{}")


ENDS = {
    "no result": (0, None, 2, "pytest ended with exit code 0 and judged nothing"),
    "killed": (None, None, 2, "pytest was killed after its time limit and judged nothing"),
    "not committed": (
        0,
        results(3, needs_commit=["baselines/a", "baselines/b"]),
        3,
        "all passed, by baselines that are not in the commit: 2 files of them to commit",
    ),
    "pytest has the last word": (1, results(0), 2, "nothing failed, and pytest ended with exit code 1"),
}


@pytest.mark.parametrize("how", ENDS)
def test_how_a_run_may_end(played, capsys, tmp_path, how):
    """In one line; where nothing is known GitHub's page says it, too, in red."""
    gate, _, left = played
    status, found, code, told = ENDS[how]
    left.update(status=status, results=found)
    page = tmp_path / "page.md"
    assert gate([], {"JAX_PLATFORMS": "cpu", "GITHUB_STEP_SUMMARY": str(page)}) == code
    assert f"{told} (exit code {code})" in capsys.readouterr().out
    assert page.exists() is (found is None)
    assert found is not None or page.read_text().startswith("## ❌ jaxgate: no result")


@pytest.mark.parametrize(
    ("slug", "environ", "against"),
    [
        (None, {"JAX_PLATFORMS": "cpu"}, True),
        ("cpu-amd-epyc-1-jax-0.10", {"JAX_PLATFORMS": "cpu"}, False),
        ("cpu-amd-epyc-1-jax-0.10", {"JAX_PLATFORMS": "cuda"}, True),
        ("gpu-nvidia-h200-1-jax-0.10", {"JAX_PLATFORMS": "cuda"}, False),
        ("tpu-tpu-v5-lite-8-jax-0.10", {"JAX_PLATFORMS": "tpu"}, False),
        ("tpu-v5e-2x4-8-jax-0.10", {"JAXGATE_TARGET": "tpu:v4:2x2x1"}, False),
        ("cpu-amd-epyc-1-jax-0.10", {"JAXGATE_TARGET": "tpu:v5e:2x4"}, True),
    ],
)
def test_hardware_without_baselines_is_compared_with_the_merge_base(played, tmp_path, slug, environ, against):
    """And never where somebody chose something else."""
    gate, commands, left = played
    left["results"] = results(0)
    if slug is not None:
        stored(tmp_path, slug)
    assert gate([], environ) == 0
    assert ("--perf-against=merge-base" in commands[-1][0]) is against
    gate(["--perf-against", "HEAD~1"], environ)
    assert "--perf-against=merge-base" not in commands[-1][0]


def test_the_platform_is_asked_for_where_no_variable_names_it():
    assert platform({}, lambda: "tpu") == "tpu"
    assert platform({"JAX_PLATFORMS": "unheard-of"}, lambda: "gpu") == "gpu"
    assert platform({"JAX_PLATFORMS": "cuda,cpu"}, lambda: "cpu") == "cpu"  # what JAX does without its plugin


def test_there_is_always_a_time_limit(played):
    """An hour, or what was asked for; strict, and of the suite's folder if nothing is named."""
    from pathlib import Path

    gate, commands, _ = played
    Path("perf").mkdir()
    gate([], {"JAX_PLATFORMS": "cpu"})
    gate(["--perf-time-limit", "60", "-k", "perf"], {"JAX_PLATFORMS": "cpu"})
    gate(["perf/"], {"JAX_PLATFORMS": "cpu", "JAXGATE_TIME_LIMIT": "90"})
    (first, hour), (second, minute), (third, more) = commands
    assert (hour, minute, more) == (3600, 60, 90)
    assert first[:2] == ["perf", "--perf-strict"]
    assert "--perf-time-limit=3600" in first
    assert second.count("--perf-time-limit") == 1
    assert not any(argument.startswith("--perf-time-limit=") for argument in second)
    assert third.count("perf") == 0


def test_values_of_options_are_no_paths(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "perf").mkdir()
    assert suite(["-k", "perf"]) == ["perf"]
    assert divided(["-k", "perf", "perf", "-x"]) == (["perf"], ["-k", "perf", "-x"])
    assert value_of(["--a=1", "--a", "2"], "--a") == "2"
    assert not value_of(["--ab=1"], "--a")


def test_the_folder_of_baselines_is_pytests(monkeypatch, tmp_path):
    """Option, variable, ini key."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest]\nperf_baselines = "kept"\n')
    assert str(baselines_folder([], {})) == "kept"
    assert str(baselines_folder(["--perf-baselines=x"], {"JAXGATE_BASELINES": "y"})) == "x"
    assert str(baselines_folder([], {"JAXGATE_BASELINES": "y"})) == "y"


QUIET = MachineState(cores=2, load=None, busy_cores=0.1, steal=0.0, clock=1.0)
BUSY = MachineState(cores=2, load=None, busy_cores=1.9, steal=0.0, clock=1.0)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout in which pytest records one file; returns its folder and the command lines."""
    import subprocess

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    run = subprocess.run
    (tmp_path / "kept.txt").write_text("")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        git(tmp_path, *arguments)
    commands, status = [], [0]

    def fake(command, **options):
        if command[0] != sys.executable:
            return run(command, **options)
        commands.append(command)
        (tmp_path / "baselines/cpu-x-1").mkdir(parents=True, exist_ok=True)
        (tmp_path / "baselines/cpu-x-1/step.json").write_text("{}")
        (tmp_path / "baselines/log").mkdir(exist_ok=True)
        (tmp_path / "baselines/log/today.md").write_text("- today\n")
        return subprocess.CompletedProcess(command, status[0])

    monkeypatch.setattr(records.subprocess, "run", fake)
    return tmp_path, commands, status


def recorded(*seen, arguments=(), busy_ok=False):
    """The exit code of a recording on a machine that looks so, before and after."""
    looks = iter(seen)
    return record("why", arguments, busy_ok=busy_ok, see=lambda *_, **__: next(looks), ticks=lambda: None)


def test_a_noisy_machine_records_nothing(repository, capsys):
    """And says what was seen; unless that was asked for, and then the log says it."""
    folder, commands, _ = repository
    assert recorded(BUSY) == 2
    assert not commands
    assert "1.9 cores at work" in capsys.readouterr().err
    assert recorded(BUSY, BUSY, busy_ok=True) == 0
    assert any("not quiet: 1.9 cores" in argument for argument in commands[0])
    assert (folder / "perf-artifacts/baselines.patch").read_text().count("step.json") > 0


def test_a_machine_that_becomes_noisy_takes_it_back(repository, capsys):
    folder, _, _ = repository
    assert recorded(QUIET, BUSY) == 2
    assert not (folder / "baselines").exists()
    assert not (folder / "perf-artifacts").exists()
    assert "taken back" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "code", "stays"), [(0, 0, True), (1, 1, True), (2, 2, False), (5, 2, False)])
def test_the_outcome_of_the_suite_decides(repository, status, code, stays):
    """Cases that could not be recorded are told; a suite that broke records nothing."""
    folder, _, status_of = repository
    status_of[0] = status
    assert recorded(QUIET, QUIET) == code
    assert (folder / "perf-artifacts/baselines.patch").exists() is stays


def test_what_is_somebodys_is_not_recorded_over(repository, capsys):
    """A patch among files of somebody else would be marked as ours; changes of the baselines would be in it, or taken back."""
    folder, commands, _ = repository
    assert recorded(QUIET, arguments=["--perf-artifacts=."]) == 2
    assert "holds files that jaxgate did not write" in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {".git", "kept.txt"}
    (folder / "baselines").mkdir()
    (folder / "baselines/mine.json").write_text("{}")
    assert recorded(QUIET) == 2
    assert (folder / "baselines/mine.json").exists()
    assert "as it was committed, found changes" in capsys.readouterr().err
    assert not commands


@pytest.mark.parametrize("unread", [None, "[" * 200_000], ids=["none", "nothing but brackets"])
def test_without_a_result_the_comment_is_red(tmp_path, capsys, unread):
    """Or with one of another commit: an old green text must not stay; nor does it end in a traceback."""
    if unread:
        (tmp_path / "summary.md").write_text("## ✅ all is well")
        (tmp_path / "results.json").write_text(unread)
    assert comment(tmp_path) == 0
    assert capsys.readouterr().out.startswith(f"{MARK}\n## ❌ jaxgate: no result")
    (tmp_path / "summary.md").write_text("## ✅ fine\n")
    (tmp_path / "results.json").write_text(json.dumps({"commit": "a" * 40}))
    comment(tmp_path, "a" * 40)
    assert "✅ fine" in capsys.readouterr().out
    comment(tmp_path, "b" * 40)
    assert "❌ jaxgate: no result of this commit" in capsys.readouterr().out


def test_the_comment_calls_nobody(tmp_path, capsys):
    """Whatever the page says: bots obey what is quoted, too. A product of matrices stays one."""
    (tmp_path / "summary.md").write_text(
        "## red\n\n```text\n@dependabot merge\n/approve\n  /lgtm\ny = x @ w / 2\n```\n"
    )
    (tmp_path / "results.json").write_text(json.dumps({"commit": "`@a\n/b <c>"}))
    comment(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[4:8] == ["\uff20dependabot merge", "\uff0fapprove", "  \uff0flgtm", "y = x @ w / 2"]
    comment(tmp_path, "b" * 40)
    assert "The results are of no commit, expected `bbbbbbbbbb`." in capsys.readouterr().out


def test_a_long_page_is_cut_between_folds():
    """What is left is whole, and says that there is more."""
    folds = [f"<details><summary>{n}</summary>\n\n```text\n{'x' * 400}\n\ny\n```\n\n</details>" for n in range(20)]
    page = "\n\n".join(["## head", *folds])
    cut = shortened(page, 3000)
    assert len(cut) <= 3000
    assert cut.count("<details>") == cut.count("</details>") > 2
    assert cut.endswith("in the artifacts of the run.")
    assert shortened(page, 100_000) == page


DEEP = "[" * 200_000


@pytest.mark.parametrize("text", [DEEP, "[]", "{", "9" * 5000])
def test_the_gate_has_no_result_where_none_can_be_read(tmp_path, capsys, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")

    def run(command, environ, limit_s):
        Path(environ[RESULTS_INTO]).write_text(text)
        return 0

    assert gate(["--perf-against=HEAD"], {}, run) == GateExit.BROKEN
    assert "judged nothing" in capsys.readouterr().out


def test_a_page_does_nothing_to_a_terminal(tmp_path, capsys):
    """It may come from an artifact of a pull request."""
    (tmp_path / "summary.md").write_text("## ✅ \x1b[2J\u202e")
    (tmp_path / "results.json").write_text(json.dumps({"commit": "a"}))
    comment(tmp_path)
    assert "## ✅ \\u001b[2J\\u202e" in capsys.readouterr().out


def test_a_patch_runs_nothing_of_the_checkout(tmp_path, monkeypatch):
    """No monitor, no program that shows differences: the patch has to apply."""
    mark, trap = tmp_path / "mark", tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    trap.chmod(0o755)
    root = tmp_path / "project"
    (root / "baselines").mkdir(parents=True)
    (root / "baselines/a.json").write_text("1\n")
    commit(root)
    for name in ("core.fsmonitor", "diff.external"):
        git(root, "config", name, str(trap))
    (root / "baselines/a.json").write_text("2\n")
    monkeypatch.chdir(root)
    assert "-1\n+2\n" in records._patch(Path("baselines"))
    assert not mark.exists()
