"""A test that got another name: the run says which baseline is most likely its own, and how it keeps it."""

import json
import shlex
import subprocess

import pytest
from support.git import commit, git
from support.projects import TWO, model


@pytest.fixture
def recorded(project):
    """Two cases, in git."""
    project.write("test_model.py", TWO).record()
    commit(project.path)
    return project


def commands(result):
    """What the run says is to be typed."""
    lines = [line.strip() for line in result.text.splitlines()]
    return [line for line in lines if line.startswith(("git mv ", "mkdir -p "))]


def follow(project, result):
    """Type it."""
    for line in commands(result):
        subprocess.run(shlex.split(line), cwd=project.path, check=True)


def test_a_renamed_test_keeps_its_baseline_by_git_mv(recorded):
    """The line says so, the commands follow, and after them the case is judged by what was recorded."""
    recorded.edit("test_model.py", "def test_second", "def test_renamed")
    result = recorded.run("--perf-strict")
    assert result.code == 1
    (line,) = [line for line in result.text.splitlines() if "has its program: renamed?" in line and " · " in line]
    assert line.startswith("NO_BASELINE  model/renamed ")
    assert line.endswith("no baseline on this hardware; model/second, whose test is gone, has its program: renamed?")
    result.shows("RENAMED? model/renamed has no baseline, and the program of model/second, whose test is gone.")
    assert "ORPHAN" not in result.text
    (case,) = [case for case in recorded.results()["cases"] if case["case"] == "model/renamed"]
    assert case["findings"][0]["detail"].endswith("`model/second`, whose test is gone, has its program: renamed?")
    (command,) = commands(result)
    assert command.endswith("/model/second.json' 'baselines/" + command.rpartition("'baselines/")[2])
    follow(recorded, result)
    result = recorded.run("--perf-strict", "-p", "no:randomly")
    assert result.line("model/renamed").startswith("SAME"), result.text
    assert "ORPHAN" not in result.text
    recorded.edit("test_model.py", "x + 1", "jnp.outer(x, x) @ x")
    recorded.run().shows("REGRESSED  model/renamed", "matmul_flops")


def test_trimming_and_refreshing_after_it(recorded):
    """What was moved by hand is not trimmed; recorded again it is whole."""
    recorded.edit("test_model.py", "def test_second", "def test_renamed")
    follow(recorded, recorded.run())
    before = recorded.baselines()
    assert recorded.run("--perf-update=trim").code == 0
    assert recorded.baselines() == before
    assert recorded.run("--perf-update=refresh").code == 0
    stored = json.loads(recorded.baseline("model/renamed").read_text())
    assert (stored["case"], stored["test"]) == ("model/renamed", "test_model.py::test_renamed")


def test_all_files_move_to_a_family_that_is_new(recorded):
    """Those of other hardware and stored times with it; the folder is made first."""
    (path,) = (recorded.path / "baselines").glob("*/model/second.json")
    hardware = path.parents[1]
    times, other = hardware / "times/model/second.json", hardware.with_name("gpu-other-1-jax-0.9") / "model/second.json"
    for copy in (times, other):
        copy.parent.mkdir(parents=True)
        copy.write_text("{}")
    git(recorded.path, "add", "-A")
    recorded.write("test_model.py", model(first="x * 2")).write("test_other.py", model(last="x + 1"))
    result = recorded.run()
    found = commands(result)
    assert [line.split()[0] for line in found] == ["mkdir"] * 3 + ["git"] * 3
    follow(recorded, result)
    names = sorted(
        path.relative_to(recorded.path / "baselines").as_posix() for path in recorded.path.rglob("last.json")
    )
    slug = hardware.name
    assert names == sorted(
        [f"{slug}/other/last.json", "gpu-other-1-jax-0.9/other/last.json", f"{slug}/times/other/last.json"]
    )


@pytest.mark.parametrize("side", ["two new ones", "two old ones", "another program"])
def test_nothing_is_guessed(recorded, side):
    """Two that fit, on either side, or none: an orphan and a case without a baseline."""
    new = "x + 1" if side != "another program" else "x - 1"
    if side == "two old ones":
        recorded.edit("test_model.py", "x * 2", "x + 1")
        assert recorded.run("--perf-update").code == 0
        recorded.write("test_model.py", model(renamed=new))
    else:
        more = {"twin": new} if side == "two new ones" else {}
        recorded.write("test_model.py", model(first="x * 2", renamed=new, **more))
    result = recorded.run()
    result.shows("NO_BASELINE  model/renamed", "ORPHAN")
    assert "renamed?" not in result.text.lower().replace("no_baseline  model/renamed", "")


def test_a_file_that_was_copied_is_refused(recorded):
    """The one that it speaks of has its own: somebody meant another thing."""
    (path,) = (recorded.path / "baselines").glob("*/model/second.json")
    path.with_name("third.json").write_bytes(path.read_bytes())
    recorded.write("test_model.py", TWO + model(third="x + 1").replace("\nimport jax, jax.numpy as jnp\n", ""))
    result = recorded.run()
    result.shows("INVALID", "expected the case `model/third`, found `model/second`, which has a file of its own")
