"""A project whose programs lie in a store beside git: recorded there, duelled with from there, and red where it is gone."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support.corpora import nightly
from support.processes import outside_variables

from jaxgate.cli.main import main
from jaxgate.keep.baselines import read_all
from jaxgate.keep.programs import named_by

TESTS = """
import jax
import jax.numpy as jnp
import pytest


@pytest.mark.parametrize("width", [8, 16, 24])
def test_step(gate, width):
    gate(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((width, width)))
"""
FACTS = ("--benchmark-disable", "--perf-profile=never")


@pytest.fixture
def there(project):
    """The store: a folder; the project names it."""
    folder = project.path / "there"
    text = (project.path / "pyproject.toml").read_text().rstrip()
    project.write("pyproject.toml", f'{text}\nperf_programs = "{folder}"\n')
    project.write("test_model.py", TESTS)
    return folder


def objects(folder):
    """The programs of the store."""
    return sorted(folder.rglob("*.export.gz"))


def test_programs_are_recorded_there_and_duelled_with(project, there):
    """Git has the JSON files alone; what changed in a program is shown, and it is timed beside the stored one."""
    assert project.run(*FACTS, "--perf-update", "--perf-why=first").code == 0
    assert len(objects(there)) == 3
    assert not (project.path / "baselines/programs").exists()
    assert project.run(*FACTS, "--perf-strict").code == 0
    before = objects(there)
    assert project.run(*FACTS, "--perf-update", "--perf-why=again").code == 0
    assert objects(there) == before
    project.edit("test_model.py", "jnp.sin(x) @ x)", "jnp.sin(x) @ x @ x)")
    found = project.run("--perf-profile=never", "-k", "24")
    assert found.code == 1
    found.shows("REGRESSED  model/step-24", "stablehlo.dot_general")
    assert "missing or damaged" not in found.text


@nightly
def test_a_program_of_the_store_can_be_given_away(project, there):
    """`jaxgate repro` compares today's program with the one that lies there."""
    project.run(*FACTS, "--perf-update", "--perf-why=first")
    project.edit("test_model.py", "jnp.sin(x) @ x)", "jnp.sin(x) @ x @ x)")
    done = project.alone("-m", "jaxgate.cli.main", "repro", "model/step-24", "--output", "file.py")
    assert done.returncode == 0, done.stderr
    assert "BASELINE = Side(" in (project.path / "file.py").read_text()
    assert len(objects(there)) == 3


def test_what_is_gone_there_is_red_and_named(project, there):
    """A changed program cannot be compared: it is not green."""
    project.run(*FACTS, "--perf-update", "--perf-why=first")
    for file in objects(there):
        file.unlink()
    project.edit("test_model.py", "jnp.sin(x) @ x)", "jnp.cos(x) @ x)")
    found = project.run("--perf-profile=never", "-k", "24")
    assert found.code == 1
    found.shows("is missing or damaged, here and in", str(there), "record the case again with --perf-update")


def test_a_store_that_takes_nothing_records_nothing(project, there):
    there.write_text("a file, and no folder")
    found = project.run(*FACTS, "--perf-update", "--perf-why=first")
    assert found.code == 1
    found.shows("keeping the program", "nothing of the case was recorded")
    assert read_all(project.path / "baselines") == ({}, [])


def test_a_recording_that_is_killed_leaves_no_baseline_without_its_program(project, there):
    """Whenever that is: a program is written before the baseline that names it, and the next recording goes on."""
    many = ", ".join(str(width) for width in range(8, 24))
    project.edit("test_model.py", "[8, 16, 24]", f"[{many}]")
    command = [sys.executable, "-m", "pytest", "-q", *FACTS, "--perf-update", "--perf-why=first"]
    variables = outside_variables(JAXGATE_OPINION="0", JAXGATE_HISTORY="none")
    run = subprocess.Popen(command, cwd=project.path, env=variables, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while not (project.path / "baselines").exists() or len(list((project.path / "baselines").rglob("*.json"))) < 2:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    baselines, unreadable = read_all(project.path / "baselines")
    assert unreadable == []
    kept = {(file.parent.name, file.name.removesuffix(".export.gz")) for file in objects(there)}
    assert len(baselines) < 16
    assert named_by(baselines.values()) <= kept
    assert project.run(*FACTS, "--perf-update", "--perf-why=on").code == 0
    assert len(read_all(project.path / "baselines")[0]) == 16


def test_programs_are_moved_out_of_git(project, there, monkeypatch, capsys):
    """`jaxgate store`, then `jaxgate baselines`: each with its exit code and what it says."""
    monkeypatch.chdir(project.path)

    def said(command):
        capsys.readouterr()
        code, out = main([command]), capsys.readouterr()
        return code, out.out + out.err

    text = (project.path / "pyproject.toml").read_text()
    project.write("pyproject.toml", text.replace("perf_programs", "# perf_programs"))
    project.run(*FACTS, "--perf-update", "--perf-why=first")
    assert len(list((project.path / "baselines/programs").iterdir())) == 3
    code, none = said("store")
    assert (code, "found none" in none) == (2, True)
    project.write("pyproject.toml", text)
    code, moved = said("store")
    assert (code, "3 programs moved to" in moved) == (0, True)
    assert list((project.path / "baselines/programs").iterdir()) == []
    assert len(objects(there)) == 3
    code, listed = said("baselines")
    assert (code, "store    3 programs beside git (perf_programs)" in listed) == (0, True)
    assert project.run(*FACTS, "--perf-strict").code == 0
    objects(there)[0].unlink()
    assert said("baselines")[0] == 1
