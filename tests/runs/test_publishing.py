"""The end of a run, for others: summary and results beside the bundles, the job's summary, annotations."""

import json

import pytest
from support.git import commit, git
from support.paths import REPOSITORY
from support.projects import model

MODEL = model("jnp.ones(64)", step="jnp.tanh(x)", other="jnp.tanh(x)")
ALERTS = ("results.sarif", "codequality.json")
MORE = ("def step(x):\n    return jnp.tanh(x)", "def step(x):\n    return jnp.tanh(x), x * 2")


@pytest.fixture
def recorded(project, monkeypatch):
    """Two recorded cases; no GitHub."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAXGATE_BUDGET", "0")  # time is not what this is about
    return project.write("test_model.py", MODEL).record()


def test_a_summary_that_cannot_be_written_changes_nothing(recorded, monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "step.md"))
    result = recorded.run()
    assert result.code == 0
    result.shows("the job's summary could not be written")


def test_what_is_red_stands_at_the_edit(recorded, monkeypatch):
    """GitHub's annotation, SARIF and GitLab's report name the line that the branch changed, in what gives no line of its own."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    commit(recorded.path)
    git(recorded.path, "checkout", "-b", "change")
    recorded.edit("test_model.py", *MORE)
    recorded.run("--perf-strict").shows("::error file=test_model.py,line=5,title=REGRESSED model/step::")
    assert recorded.results()["cases"][0]["line"] == "test_model.py:5"
    sarif, report = (json.loads((recorded.path / f"perf-artifacts/{name}").read_text()) for name in ALERTS)
    (result,) = sarif["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 5}
    assert [alert["location"]["lines"]["begin"] for alert in report] == [5]


def test_a_change_that_edits_its_judge_is_told(recorded):
    """Options, tolerances, marks that leave a test out: in the terminal, on the page and in the results; and not what else it edits."""
    commit(recorded.path)
    git(recorded.path, "checkout", "-b", "change")
    recorded.edit("test_model.py", "def test_step", "import pytest\n@pytest.mark.skip(reason='slow')\ndef test_step")
    recorded.write("pytest.ini", "[pytest]\nperf_strict = false\nxfail_strict = true\n")
    commit(recorded.path)
    result = recorded.run("--perf-strict")
    told = ["pytest.ini: + perf_strict = false", "test_model.py: + @pytest.mark.skip(reason='slow')"]
    result.shows(f"EDITS ITS JUDGE: 2 lines of this change say how it is judged: {'; '.join(told)}")
    assert recorded.results()["judge_edits"] == told
    page = (recorded.path / "perf-artifacts/summary.md").read_text()
    assert "This change edits 2 lines that say how it is judged" in page
    assert told[0] in page


def test_a_page_that_fails_does_not_take_the_run_with_it(recorded, monkeypatch):
    monkeypatch.setenv("JAXGATE_RESULTS_INTO", str(recorded.path / "test_model.py/results.json"))
    result = recorded.run()
    assert result.code == 0
    result.shows("2 cases: 2 SAME", "the results of the run could not be written: ")


def test_a_run_leaves_a_page_to_look_at(recorded):
    """Of all its cases; it is named in the terminal where something is red, or more is asked for."""
    result = recorded.run()
    page = (recorded.path / "perf-artifacts/report.html").read_text()
    assert "jaxgate: 2 cases passed" in page
    assert '<th scope="row" id="model/step">' in page
    assert "report.html" not in result.text
    recorded.run("-v").shows("The run on one page: perf-artifacts/report.html")
    recorded.edit("test_model.py", *MORE)
    red = recorded.run()
    red.shows("The run on one page: perf-artifacts/report.html")
    assert red.text.count("report.html") == 1
    page = (recorded.path / "perf-artifacts/report.html").read_text()
    assert "1 of 2 cases failed" in page
    assert 'href="./model/step/report.md"' in page
    assert (recorded.path / "perf-artifacts/model/step/report.md").is_file()


def test_a_page_to_look_at_that_cannot_be_made_is_one_line(recorded, monkeypatch):
    """Verdict, exit code and results are what they are without it."""
    from jaxgate.ext.page import run_page as page

    def fail(*_, **__):
        raise RuntimeError("no room\nfor it")

    monkeypatch.setattr(page, "run_page", fail)
    result = recorded.run("-v")
    assert result.code == 0
    result.shows("2 cases: 2 SAME", "jaxgate: report.html could not be made: ")
    assert "one page" not in result.text
    assert recorded.results()["green"]
    assert not (recorded.path / "perf-artifacts/report.html").exists()


def test_the_schema_is_documented():
    from jaxgate.model.outcome import RESULTS_SCHEMA, Outcome
    from jaxgate.report.results import results_json

    page = (REPOSITORY / "docs" / "results.md").read_text()
    assert f"schema {RESULTS_SCHEMA}" in page
    for key in json.loads(results_json(Outcome(verdicts=(), tests={}, texts={}))):
        assert f"`{key}`" in page


def test_junit_has_each_verdict_as_properties(recorded):
    """Once for each test, red or green."""
    from xml.etree import ElementTree as ET

    recorded.edit("test_model.py", *MORE)
    recorded.run("--junit-xml=junit.xml")
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
