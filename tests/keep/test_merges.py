"""Two branches that refresh different cases of the same hardware merge without a conflict, their logs too."""

import json

import pytest
from support.corpora import nightly
from support.git import commit, git

MODEL = """
import jax, jax.numpy as jnp
from {name} import step

def test_{name}(gate):
    gate(step, jnp.ones(8), name="model/{name}")
"""
STEP = "def step(x):\n    return x {change}\n"


@pytest.fixture
def repository(project, monkeypatch):
    """A project with two recorded cases in a repository of its own."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    project.write(".gitignore", "__pycache__/\nperf-artifacts/\n.benchmarks/\n")
    for name, change in (("helpers_one", "* 2"), ("helpers_two", "* 3")):
        project.write(f"{name}.py", STEP.format(change=change))
        project.write(f"test_{name}.py", MODEL.format(name=name))
    record(project, "both are new")
    return project


def record(project, why):
    """Record what is selected, and commit it."""
    chosen = (
        ["--perf-update=create"] if why == "both are new" else ["--perf-update=refresh", "-k", why.partition(" ")[0]]
    )
    result = project.run(*chosen, "--perf-why", why)
    assert result.code == 0, result.text
    commit(project.path, why)


@nightly
def test_branches_that_refresh_different_cases_merge(repository):
    """Baselines, programs and log of both are there, and the whole is green under CI."""
    project = repository
    for name in ("helpers_one", "helpers_two"):
        git(project.path, "switch", "--quiet", "-c", f"branch_{name}", "main")
        project.write(f"{name}.py", STEP.format(change="@ x"))
        record(project, f"{name} multiplies now")
    git(project.path, "merge", "--no-edit", "branch_helpers_one")
    assert git(project.path, "status", "--porcelain") == ""
    log = "".join(path.read_text() for path in sorted((project.path / "baselines/log").glob("*.md")))
    assert [log.count(why) for why in ("both are new", "helpers_one multiplies", "helpers_two multiplies")] == [1, 1, 1]
    stored = [json.loads(text) for text in project.baselines().values()]
    assert [content["facts"]["matmul_flops"] > 0 for content in stored] == [True, True]
    named = {content["fingerprints"]["program"] for content in stored}
    assert {path.name.partition(".")[0] for path in (project.path / "baselines/programs").iterdir()} == named
    result = project.run("--perf-strict")
    assert result.code == 0, result.text
    assert "NEEDS COMMIT" not in result.text
