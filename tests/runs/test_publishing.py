"""The end of a run, for others: summary and results beside the bundles, the job's summary, annotations."""

from __future__ import annotations

import json

import pytest
from support.git import git
from support.paths import REPOSITORY

MODEL = """
import jax.numpy as jnp

def step(x):
    return jnp.tanh(x)

def test_step(gate):
    gate(step, jnp.ones(64))

def test_other(gate):
    gate(step, jnp.ones(32))
"""
MORE = ("    return jnp.tanh(x)", "    return jnp.tanh(x), x * 2")


@pytest.fixture
def recorded(project, monkeypatch):
    """Two recorded cases; no GitHub."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    project.write("test_model.py", MODEL)
    assert project.run("--perf-update").code == 0
    return project


def results(project):
    """What a machine reads."""
    return json.loads((project.path / "perf-artifacts/results.json").read_text())


def summary(project):
    """What a person reads."""
    return (project.path / "perf-artifacts/summary.md").read_text()


def test_a_green_run_says_so(recorded):
    """In both files."""
    result = recorded.run()
    assert result.code == 0
    assert summary(recorded).startswith("## ✅ jaxgate: 2 cases passed\n\n2 SAME on `cpu-")
    assert (results(recorded)["green"], len(results(recorded)["cases"])) == (True, 2)
    assert "::error" not in result.text


def test_a_red_run_says_what_and_why(recorded):
    """The failure text with its commands, and the exit status."""
    recorded.edit("test_model.py", *MORE)
    recorded.run("-k", "test_step")
    page = summary(recorded)
    assert page.startswith("## ❌ jaxgate: 1 of 1 case failed")
    assert "accept: add --perf-update" in page
    found = results(recorded)
    assert (found["green"], found["exit_status"], found["cases"][0]["status"]) == (False, 1, "REGRESSED")
    assert found["cases"][0]["test"] == "test_model.py::test_step"


def test_what_was_not_judged_is_not_green(recorded):
    """The run stopped before the second test."""
    recorded.edit("test_model.py", *MORE)
    recorded.run("-x")
    assert results(recorded)["not_judged"] == ["test_model.py::test_other"]
    assert "**1 not judged**: `test_model.py::test_other`" in summary(recorded)


def test_an_orphan_is_not_green_under_ci(recorded):
    """It fails the run, and the page says which."""
    text = (recorded.path / "test_model.py").read_text()
    recorded.write("test_model.py", text[: text.index("def test_other")])
    assert recorded.run("--perf-strict").code == 1
    assert not results(recorded)["green"]
    assert "other.json: its test is gone" in results(recorded)["problems"][0]


def test_githubs_runner_gets_its_summary_and_annotations(recorded, monkeypatch, tmp_path):
    """The summary is added to what other steps wrote; each failure is an error beside the run."""
    page = tmp_path / "step.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    recorded.edit("test_model.py", *MORE)
    result = recorded.run("-k", "test_step")
    assert page.read_text().startswith("before\n## ❌ jaxgate: 1 of 1 ")
    assert result.line("::error ").startswith("::error title=REGRESSED model/step::")


def test_a_summary_that_cannot_be_written_changes_nothing(recorded, monkeypatch, tmp_path):
    """The run was judged; the reason is told."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "step.md"))
    result = recorded.run()
    assert result.code == 0
    result.shows("the job's summary could not be written")


def test_edits_of_baselines_are_named_under_ci(recorded):
    """Against where the branch left its trunk, committed or not."""
    git(recorded.path, "init", "-b", "main")
    git(recorded.path, "add", ".")
    git(recorded.path, "commit", "-m", "trunk")
    git(recorded.path, "checkout", "-b", "change")
    recorded.edit("test_model.py", *MORE)
    assert recorded.run("--perf-update").code == 0
    assert recorded.run("--perf-strict").code == 0
    edits = results(recorded)["baseline_edits"]
    assert any(edit.startswith("M\t") and edit.endswith("model/step.json") for edit in edits)
    assert "This change edits" in summary(recorded)


def test_without_a_trunk_edits_are_not_known(recorded):
    """Under CI the page says so, and the run is judged all the same."""
    assert recorded.run("--perf-strict").code == 0
    assert results(recorded)["baseline_edits"] is None
    assert "is not known" in summary(recorded)


def test_a_page_that_fails_does_not_take_the_run_with_it(recorded, monkeypatch):
    """Pytest's own summary, and ours, still come."""

    def fail(_):
        raise KeyError("hardware")

    monkeypatch.setattr("jaxgate.engine.result_files.pull_request_page", fail)
    result = recorded.run()
    assert result.code == 0
    result.shows("2 cases: 2 SAME", "what the run came to could not be written down: KeyError: 'hardware'")


def test_the_schema_is_documented():
    """Every key of a real file stands in the page."""
    from jaxgate.model import Outcome
    from jaxgate.report import results_json
    from jaxgate.report.results import RESULTS_SCHEMA

    page = (REPOSITORY / "docs" / "results.md").read_text()
    assert f"schema {RESULTS_SCHEMA}" in page
    for key in json.loads(results_json(Outcome(verdicts=(), tests={}, texts={}))):
        assert f"`{key}`" in page


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_junit_has_each_verdict_as_properties(recorded, options):
    """Once for each test, red or green, from whichever process."""
    from xml.etree import ElementTree as ET

    recorded.edit("test_model.py", *MORE)
    recorded.run("--junit-xml=junit.xml", *options)
    tree = ET.parse(recorded.path / "junit.xml")
    found = {}
    for case in tree.iter("testcase"):
        pairs = [(each.get("name"), each.get("value")) for each in case.iter("property")]
        assert len(pairs) == len(dict(pairs))
        found[case.get("name")] = dict(pairs)
    assert set(found) == {"test_step", "test_other"}
    assert found["test_step"]["jaxgate.status"] == "REGRESSED"
    assert found["test_step"]["jaxgate.worst"] == "output_bytes"
    assert float(found["test_step"]["jaxgate.now"]) > float(found["test_step"]["jaxgate.against"])
    assert found["test_step"]["jaxgate.case"] == "model/step"
