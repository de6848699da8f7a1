"""A capability is one folder: without it the rest works, and no help speaks of it."""

import os
import shutil
import subprocess
import sys

import pytest
from support.corpora import one_of
from support.paths import REPOSITORY

COMMANDS = {
    "alerts": "", "bisect": "bisect", "check": "check", "diff": "diff", "doctor": "doctor", "explain": "explain",
    "repro": "repro", "shards": "merge", "loop": "", "metrics": "", "start": "", "store": "store", "watch": "",
    "ranks": "",
}  # fmt: skip
"""Folders of ``ext/`` that can be taken away today, and the command that goes with each."""
TEST = """
import jax.numpy as jnp


def test_step(gate):
    gate(lambda x: jnp.sin(x) @ x, jnp.ones((8, 8)))
"""


GATE = ("pytest", "-q", "-p", "no:cacheprovider", "--perf-profile=never", "test_model.py")
HELP = ("jaxgate.cli.main", "--help-all")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a module of Python in a project with one gate, by the package of a folder; gives what it printed."""
    project = tmp_path_factory.mktemp("project")
    (project / "test_model.py").write_text(TEST)

    def run(source, *command):
        paths = os.environ | {"PYTHONPATH": str(source), "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(
            [sys.executable, "-m", *command], env=paths, cwd=project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def commands(run):
    """The first words of the help's lines, with every folder there; the project has its baseline then."""
    run(REPOSITORY / "src", *GATE, "--perf-update", "--perf-why=first")
    return first_words(run(REPOSITORY / "src", *HELP))


def first_words(text):
    """Of each line."""
    return [line.split()[0] for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("capability", one_of([*COMMANDS]))
def test_a_folder_can_be_taken_away(run, commands, tmp_path, capability):
    """The commands are those of the rest, and a gate is judged."""
    source = tmp_path / "src"
    shutil.copytree(REPOSITORY / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(source / "jaxgate/ext" / capability)
    gone = [COMMANDS[capability]] if COMMANDS[capability] else []
    left = first_words(run(source, *HELP))
    assert all(word in commands and word not in left for word in gone)
    assert "SAME  model/step" in run(source, *GATE, "--perf-strict", "--benchmark-disable")


def test_all_of_them_can_be_taken_away_at_once(run, commands, tmp_path):
    assert commands
    source = tmp_path / "src"
    shutil.copytree(REPOSITORY / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    for capability in COMMANDS:
        shutil.rmtree(source / "jaxgate/ext" / capability)
    run(source, *GATE, "--perf-update", "--perf-why=again")
    assert "SAME  model/step" in run(source, *GATE, "--perf-strict", "--benchmark-disable")
