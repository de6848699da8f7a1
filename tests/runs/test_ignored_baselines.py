"""A baseline that a rule of git leaves out is no baseline for anybody else: it is told at once, and under CI it is red."""

import pytest
from support.git import commit, git
from support.projects import model

MODEL = model("jnp.ones((8, 8))", step="jnp.exp(-x)")


@pytest.fixture
def committed(project):
    """A project in git whose rules leave something out."""
    project.write("test_model.py", MODEL)
    git(project.path, "init", "--quiet")
    return project


@pytest.mark.parametrize(("rule", "hidden"), [("model/", "model/step.json"), ("*.gz", ".export.gz"), ("log/", ".md")])
def test_a_file_that_git_leaves_out_is_told(committed, monkeypatch, rule, hidden):
    """When it is recorded, and by each run under CI until it is committed by force."""
    committed.write(".gitignore", f"perf-artifacts\n__pycache__\n.benchmarks\n{rule}\n")
    told = committed.run("--perf-update").line("NEEDS COMMIT")
    assert f"{hidden} (ignored by git: git add --force)" in told
    commit(committed.path)
    monkeypatch.setenv("CI", "true")
    result = committed.run()
    assert f"{hidden} (ignored by git: git add --force)" in result.line("NEEDS COMMIT")
    assert not committed.results()["green"]
    git(committed.path, "add", "--force", "baselines")
    commit(committed.path)
    committed.run()
    assert committed.results()["green"]


def test_an_editors_file_may_be_ignored(committed, monkeypatch):
    committed.write(".gitignore", "perf-artifacts\n__pycache__\n.benchmarks\n.DS_Store\n").record()
    (committed.path / "baselines" / ".DS_Store").touch()
    commit(committed.path)
    monkeypatch.setenv("CI", "true")
    assert "NEEDS COMMIT" not in committed.run().text
