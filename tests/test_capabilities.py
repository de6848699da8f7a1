"""A capability is one folder: without it the rest works, and no help speaks of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from support.paths import REPOSITORY

COMMANDS = {
    "bisect": "bisect",
    "diff": "diff",
    "doctor": "doctor",
    "repro": "repro",
    "ranks": "",
}
"""Folders of ``ext/`` that can be taken away today, and the command that goes with each."""
TEST = """
import jax.numpy as jnp


def test_step(gate):
    gate(lambda x: jnp.sin(x) @ x, jnp.ones((8, 8)))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a module of Python in a project with one gate, with the package of a folder in place of the installed one."""
    project = tmp_path_factory.mktemp("project")
    (project / "test_model.py").write_text(TEST)

    def run(source, *command):
        paths = os.environ | {"PYTHONPATH": str(source), "JAX_PLATFORMS": "cpu"}
        return subprocess.run(
            [sys.executable, "-m", *command], env=paths, cwd=project, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize("capability", COMMANDS)
def test_a_folder_can_be_taken_away(run, tmp_path, capability):
    """The commands are those of the rest, and a gate records and judges."""
    source = tmp_path / "src"
    shutil.copytree(REPOSITORY / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    command = COMMANDS[capability]
    before = run(source, "jaxgate.cli.main", "--help-all")
    shutil.rmtree(source / "jaxgate/ext" / capability)
    after = run(source, "jaxgate.cli.main", "--help-all")
    assert after.returncode == 0, after.stderr
    words = [line.split()[0] for line in before.stdout.splitlines() if line.strip()]
    left = [line.split()[0] for line in after.stdout.splitlines() if line.strip()]
    assert not command or (command in words and command not in left)
    gate = ("pytest", "-q", "-p", "no:cacheprovider", "--perf-profile=never", "test_model.py")
    recorded = run(source, *gate, "--perf-update", "--perf-why=first")
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    judged = run(source, *gate, "--perf-strict", "--benchmark-disable")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "SAME  model/step" in judged.stdout
