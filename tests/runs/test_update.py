"""--perf-update: exactly the selected cases, whole files, a line in the log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from support.projects import TWO


def test_only_selected_cases_are_written(project):
    """A selection creates its own files and leaves every other file as it was."""
    project.write("test_model.py", TWO)
    assert project.run("-k", "first", "--perf-update").code == 0
    before = project.baselines()
    assert [path.split("/", 1)[1] for path in before] == ["model/first.json"]
    project.edit("test_model.py", "x * 2", "x * 3")
    assert project.run("-k", "second", "--perf-update").code == 0
    after = project.baselines()
    assert [path.split("/", 1)[1] for path in after] == ["model/first.json", "model/second.json"]
    assert after[next(iter(before))] == before[next(iter(before))]


def test_the_log_gets_a_line(project):
    """Each recording run adds one dated line with cases and reason."""
    project.write("test_model.py", TWO)
    result = project.run("--perf-update", "--perf-why", "first recording")
    result.shows("CREATED  model/first", "Recorded under baselines; commit it, its log with it.")
    project.run("-k", "first", "--perf-update").shows("REFRESHED  model/first")
    entries = (path.read_text() for path in (project.path / "baselines/log").glob("*.md"))
    first, second = sorted(entries, key=lambda text: "refreshed" in text)  # both within a second, perhaps
    assert "created `model/first`, `model/second`. Why: first recording" in first
    assert "refreshed `model/first`. Why: (no reason given)" in second


def test_a_recorded_case_is_same_on_the_next_run(project):
    """Recording and judging agree: identical work does not differ."""
    project.write("test_model.py", TWO)
    project.run("--perf-update")
    result = project.run("--perf-strict")
    result.counts(passed=2)
    assert result.line("model/first").startswith("SAME")


def test_a_broken_claim_is_not_recorded(project):
    """Nothing that no baseline can make right is accepted; the old file stays."""
    project.write("test_model.py", TWO)
    project.run("--perf-update")
    before = project.baselines()
    project.edit("test_model.py", "return x * 2", "return x * jnp.nan")
    project.edit("test_model.py", "gate(second, jnp.ones(8))", "gate(second, jnp.ones(8), expected_traces=2)")
    result = project.run("--perf-update")
    result.counts(failed=2)
    result.shows("INVALID  model/first", "REGRESSED  model/second", "claim traces = 2: 1 against 2")
    assert project.baselines() == before


def test_a_corrupt_baseline_can_be_recorded_again(project):
    """The remedy that the error names works."""
    project.write("test_model.py", TWO)
    project.run("--perf-update")
    for path in (project.path / "baselines").rglob("first.json"):
        path.write_text("{")
    project.run("-k", "first", "--perf-update").shows("REFRESHED  model/first")
    assert project.run("--perf-strict").code == 0


def test_what_changed_is_shown_when_refreshing(project):
    """A refresh names the facts that moved."""
    project.write("test_model.py", TWO)
    project.run("--perf-update")
    project.edit("test_model.py", "return x * 2", "return x @ jnp.ones((8, 8))")
    result = project.run("-k", "first", "--perf-update")
    result.counts(passed=1, deselected=1)
    assert "matmul_flops" in result.line("REFRESHED")


@pytest.mark.parametrize("moment", ["before the rename", "between two cases"])
def test_a_killed_update_leaves_whole_files(project, moment):
    """A run killed while it records leaves each baseline old or new, never half."""
    project.write("test_model.py", TWO)
    assert project.run("--perf-update").code == 0
    before = project.baselines()
    project.edit("test_model.py", "x * 2", "x * 3")
    project.edit("test_model.py", "x + 1", "x + 2")
    killed_at = 1 if moment == "before the rename" else 2
    project.write(
        "conftest.py",
        "import os, signal\nreal = os.replace\ncalls = []\n"
        "def replace(a, b, *rest, **options):\n"
        "    if str(b).endswith('.json'):\n"
        "        calls.append(b)\n"
        f"        if len(calls) == {killed_at}:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return real(a, b, *rest, **options)\n"
        "os.replace = replace\n",
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--perf-update"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=project.path, capture_output=True, check=False, env=environment)
    assert done.returncode == -signal.SIGKILL
    after = project.baselines()
    assert sorted(after) == sorted(before)
    for content in after.values():
        json.loads(content)
    changed = [path.rsplit("/", 1)[1] for path in after if after[path] != before[path]]
    assert changed == ([] if killed_at == 1 else ["first.json"])
    (project.path / "conftest.py").unlink()
    project.run("--perf-update").counts(passed=2)


def test_borrowed_baselines_gate_and_are_not_overwritten(project):
    """Hardware of the same platform lends its baseline; recording writes this machine's own."""
    project.write("test_model.py", TWO)
    project.run("--perf-update")
    (own,) = (project.path / "baselines").glob("cpu-*")
    for path in own.rglob("*.json"):
        content = json.loads(path.read_text())
        content["hardware"]["device_kind"] = "Other CPU"
        path.write_text(json.dumps(content))
    own.rename(own.with_name("cpu-other-cpu-1"))
    result = project.run("--perf-strict")
    result.counts(passed=2)
    assert "hardware changed" in result.line("model/first")
    project.edit("test_model.py", "return x * 2", "return x @ jnp.ones((8, 8))")
    result = project.run("-k", "first")
    result.counts(failed=1, deselected=1)
    result.shows("borrowed from cpu-other-cpu-1")
    project.run("-k", "second", "--perf-update").shows("CREATED  model/second")
