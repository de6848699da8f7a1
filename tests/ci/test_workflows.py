"""The workflows and the action: what they may do, and that what they call exists."""

import os
import re
import subprocess

import pytest
import yaml
from support.paths import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.y*ml"))
FILES = [*WORKFLOWS, REPOSITORY / "action.yml"]
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
OWN = "github.event.pull_request.head.repo.full_name == github.repository"
VERBS = {"docs", "ready", "test"}
"""Targets of make that workflows may call beside what lies in ci/."""


def faults(text):
    """What is wrong with a workflow or an action, one line each."""
    file = yaml.safe_load(text)
    found = list(_unpinned(text))
    if "runs" in file:
        return found + list(_steps(file["runs"]["steps"]))
    triggers = file[True]  # YAML 1.1 takes "on" for a truth value
    if "pull_request_target" in triggers:
        found.append("pull_request_target")
    if "permissions" not in file:
        found.append("no permissions at the top")
    elif "write" in str(file["permissions"]):
        found.append("write permissions at the top")
    for name, job in file["jobs"].items():
        if "timeout-minutes" not in job:
            found.append(f"{name} has no timeout")
        if "self-hosted" in str(job["runs-on"]) and "pull_request" in triggers and OWN not in job.get("if", ""):
            found.append(f"{name} runs forks on our own machine")
        found += _steps(job["steps"])
    return found


def _unpinned(text):
    """Actions without a commit, or without the version that a reader can look up."""
    for line in text.splitlines():
        used = re.match(r"\s*(?:- )?uses:\s*(\S+)(.*)", line)
        if used and not used[1].startswith("./") and not PINNED.fullmatch(used[1]):
            yield f"{used[1]} is not pinned by a commit"
        elif used and not used[1].startswith("./") and not re.fullmatch(r" # v\d+(\.\d+)+", used[2]):
            yield f"{used[1]} has no version beside it"


def _steps(steps):
    for step in steps:
        used, script = step.get("uses", ""), step.get("run", "")
        if "${{" in script:
            yield f"a script interpolates: {script.splitlines()[0]}"
        if used.startswith("actions/checkout@") and step.get("with", {}).get("persist-credentials") is not False:
            yield "a checkout keeps its token"
        if used.startswith("actions/upload-artifact@") and "always()" not in step.get("if", ""):
            yield "an upload that a failure skips"
        for path in re.findall(r"(?<![\w./-])ci/[\w./-]+", script):
            program = REPOSITORY / path
            runs = program.is_file() and (f"python3 {path}" in script or os.access(program, os.X_OK))
            if not runs:
                yield f"{path} cannot be run"
        yield from (f"make knows no {verb}" for verb in re.findall(r"\bmake ([\w-]+)", script) if verb not in VERBS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_keeps_the_rules(path):
    """No workflow has a fault, and neither has the action."""
    assert faults(path.read_text(encoding="utf-8")) == []


def test_all_of_them_are_looked_at():
    """All workflows and the action: an empty folder would keep every rule."""
    assert {path.name for path in FILES} == {
        "action.yml", "comment.yml", "gate.yml", "gpu.yml", "history.yml",
        "nightly.yml", "release.yml", "tpu.yml",
    }  # fmt: skip


def test_a_target_is_judged_by_the_families_that_have_baselines_for_it():
    """Strict runs are red for a case without a baseline: workflow, Makefile and ``baselines/`` name the same families."""
    gate = yaml.safe_load((REPOSITORY / ".github/workflows/gate.yml").read_text(encoding="utf-8"))
    for job in gate["jobs"]["target"]["strategy"]["matrix"]["include"]:
        target = job["target"]
        folders = REPOSITORY.glob(f"baselines/{target.replace(':', '-')}-*/*")
        make = subprocess.run(
            ["make", "-n", "perf-target", f"TARGET={target}", "K="],
            env={**os.environ, "MAKEFLAGS": ""},  # `make test` may have started this
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            check=True,
        )
        families = set(job["families"].split())
        assert families == {folder.name for folder in folders} == set(re.findall(r"perf/test_(\w+)\.py", make.stdout))


GOOD = """
on:
  pull_request:
permissions:
  contents: read
jobs:
  one:
    if: github.event.pull_request.head.repo.full_name == github.repository
    runs-on: [self-hosted, gpu]
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          persist-credentials: false
      - run: make ready && ci/gate
      - if: always()
        uses: actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0
"""
PLANTED = [
    ("3d3c42e5aac5ba805825da76410c181273ba90b1", "v7", "actions/checkout@v7 is not pinned by a commit"),
    ("3d3c42e5aac5ba805825da76410c181273ba90b1", "3d3c42e", "actions/checkout@3d3c42e is not pinned by a commit"),
    (" # v7.0.1", "", "has no version beside it"),
    ("permissions:\n  contents: read\n", "", "no permissions at the top"),
    ("contents: read", "contents: write", "write permissions at the top"),
    ("permissions:\n  contents: read\n", "permissions: write-all\n", "write permissions at the top"),
    ("  pull_request:", "  pull_request_target:", "pull_request_target"),
    ("  pull_request:", "  pull_request:\n  push:", None),
    ("    timeout-minutes: 5\n", "", "one has no timeout"),
    ("    if: github.event.pull_request.head.repo.full_name == github.repository\n", "", "one runs forks"),
    ("persist-credentials: false", "fetch-depth: 0", "a checkout keeps its token"),
    ("if: always()", "if: success()", "an upload that a failure skips"),
    ("ci/gate", "ci/gate ${{ github.event.pull_request.title }}", "a script interpolates"),
    ("ci/gate", "ci/gate -k ${{ inputs.selection }}", "a script interpolates"),
    ("ci/gate", "ci/none", "ci/none cannot be run"),
    ("ci/gate", "ci/cost.py", "ci/cost.py cannot be run"),
    ("ci/gate", "python3 ci/cost.py", None),
    ("make ready", "make perfect", "make knows no perfect"),
]


@pytest.mark.parametrize(("good", "bad", "expected"), PLANTED, ids=range(len(PLANTED)))
def test_a_fault_is_found(good, bad, expected):
    """Each rule sees what breaks it, and nothing else."""
    assert faults(GOOD) == []
    assert good in GOOD
    found = faults(GOOD.replace(good, bad))
    assert len(found) == (expected is not None)
    assert (expected or "") in "".join(found)


def test_only_workflows_that_run_no_foreign_code_may_write():
    """Each of the two asks for what it needs, and ``workflow_run`` checks out the default branch."""
    writing = [path.name for path in WORKFLOWS if re.search(r"^\s*[\w-]+: write", path.read_text(), re.MULTILINE)]
    may = {
        "comment": {"actions": "read", "contents": "read", "pull-requests": "write"},
        "history": {"actions": "read", "contents": "write"},
    }
    assert writing == [*(f"{name}.yml" for name in may), "release.yml"]
    for name, permissions in may.items():
        file = yaml.safe_load((REPOSITORY / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
        assert (file["permissions"], list(file[True]), list(file["jobs"])) == ({}, ["workflow_run"], [name])
        job = file["jobs"][name]
        assert job["permissions"] == permissions
        checkouts = [step["with"]["ref"] for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert checkouts == ["${{ github.event.repository.default_branch }}"]


def test_only_a_tag_publishes():
    """By a token of the moment, which the index trusts in one environment; nothing of the repository may be written."""
    file = yaml.safe_load((REPOSITORY / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    assert (file["permissions"], file[True], list(file["jobs"])) == ({}, {"push": {"tags": ["v*"]}}, ["publish"])
    job = file["jobs"]["publish"]
    assert (job["environment"], job["permissions"]) == ("pypi", {"contents": "read", "id-token": "write"})
    assert "secrets." not in str(job)


def test_the_history_takes_runs_of_main_alone():
    """A pull request's run, or a fork's branch that is called main, adds nothing to it."""
    file = yaml.safe_load((REPOSITORY / ".github/workflows/history.yml").read_text(encoding="utf-8"))
    assert file[True]["workflow_run"] == {"workflows": ["gate"], "types": ["completed"], "branches": ["main"]}
    condition = file["jobs"]["history"]["if"]
    assert "github.event.workflow_run.event == 'push'" in condition
    assert "&& github.event.workflow_run.head_repository.full_name == github.repository" in condition


def test_a_machine_does_one_job_at_a_time():
    """Nightly runs and gates of one machine wait in one queue, and nothing in progress is killed."""
    for machine in ("gpu", "tpu"):
        job = yaml.safe_load((REPOSITORY / f".github/workflows/{machine}.yml").read_text(encoding="utf-8"))["jobs"][
            "gate"
        ]
        assert job["concurrency"] == {"group": f"machine-{machine}", "cancel-in-progress": False, "queue": "max"}
    nightly = yaml.safe_load((REPOSITORY / ".github/workflows/nightly.yml").read_text(encoding="utf-8"))["jobs"][
        "nightly"
    ]
    assert nightly["concurrency"]["group"] == "machine-${{ matrix.machine }}"
    assert nightly["concurrency"]["queue"] == "max"


class Action:
    """The scripts of action.yml, run as a runner does, with commands that write down how they were called."""

    def __init__(self, folder):
        self.folder = folder
        self.output = folder / "output"
        self.calls = folder / "calls"
        self.steps = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]

    def command(self, name, script=""):
        """Put a command on the path; one argument to a line."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" > {self.calls}\n{script}\n')
        path.chmod(0o755)

    def run(self, name, **environ):
        """Run one step; its exit code."""
        (step,) = (step for step in self.steps if step.get("name") == name)
        assert set(environ) == set(step["env"])
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        environ |= {"PATH": path, "GITHUB_OUTPUT": str(self.output), "GITHUB_ACTION_PATH": "/action"}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=self.folder, env=environ, check=False).returncode


@pytest.fixture
def action(tmp_path):
    """The action in an empty workspace."""
    return Action(tmp_path)


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_action_ends_as_the_gate_does(action, code):
    """The gate's exit code is the step's and an output; so is the summary of this run."""
    action.command("jaxgate", f"mkdir -p perf-artifacts; touch perf-artifacts/summary.md; exit {code}")
    assert action.run("Gate", PATHS="tests/perf  other.py", SELECTION="scan and 32", TIME_LIMIT="60") == code
    assert action.output.read_text() == f"exit-code={code}\nsummary={action.folder}/perf-artifacts/summary.md\n"
    assert action.calls.read_text().splitlines() == [
        *["gate", "tests/perf", "other.py", "--perf-artifacts=perf-artifacts", "--perf-time-limit=60"],
        *["-k", "scan and 32"],
    ]


def test_an_older_summary_does_not_stand_for_a_run_that_broke(action):
    """What lay there before is gone; a gate that cannot be started is red and has no summary."""
    (action.folder / "perf-artifacts").mkdir()
    (action.folder / "perf-artifacts" / "summary.md").write_text("green")
    assert action.run("Gate", PATHS="", SELECTION="", TIME_LIMIT="60") == 127
    assert action.output.read_text() == "exit-code=127\n"


def test_inputs_are_never_evaluated(action):
    """An input that looks like a command reaches pytest and pip as text."""
    action.command("jaxgate")
    assert action.run("Gate", PATHS="$(touch bad)", SELECTION="`touch bad`; touch bad", TIME_LIMIT="1") == 0
    assert action.calls.read_text().splitlines()[1:3] == ["$(touch", "bad)"]
    assert action.calls.read_text().splitlines()[-1] == "`touch bad`; touch bad"
    action.command("python")
    assert action.run("Install", INSTALL="-e .[test] jax; touch bad") == 0
    assert action.calls.read_text().splitlines()[-6:] == ["/action", "-e", ".[test]", "jax;", "touch", "bad"]
    assert not (action.folder / "bad").exists()
