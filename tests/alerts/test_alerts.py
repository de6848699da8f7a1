"""A red case at its line: what code hosts are told, and where they show it."""

import json

import pytest
from support.histories import case, run

from jaxgate.ext.alerts.pages import alerts, code_quality, sarif
from jaxgate.model.outcome import FindingRecord
from jaxgate.report.pull_request import FAR, in_the_diff, place

RED = {
    "name": "train/step",
    "status": "REGRESSED",
    "line": "src/my model.py:17",
    "findings": (FindingRecord(kind="fact", name="temp_bytes", status="REGRESSED"),),
    "causes": ("remat is lost at my model.py:17", "another"),
    "text": "REGRESSED  train/step\n  found     temp_bytes",
}
RUN = run(1, case(**RED), case("train/other"), project="python/", not_judged=("tests/test_a.py::test_b[c]",))
QUIET = run()


def test_what_is_red_and_what_gave_no_verdict_is_told_and_nothing_else():
    """The first cause, else what was found; a test without a verdict at its file."""
    lost = case("train/lost", status="INVALID", fails=True, line="tests/test_a.py")
    assert [(alert.file, alert.line, alert.rule, alert.short) for alert in alerts(run(1, case(**RED), lost))] == [
        ("src/my model.py", 17, "temp_bytes", "REGRESSED train/step: remat is lost at my model.py:17"),
        ("tests/test_a.py", 1, "INVALID", "INVALID train/lost: INVALID"),
    ]
    (*_, last) = alerts(RUN)
    assert (last.file, last.line) == ("python/tests/test_a.py", 1)
    assert last.short.startswith("NOT JUDGED tests/test_a.py::test_b[c]")


def test_sarif_has_what_github_asks_for():
    """A rule of each result, a relative address, a line from 1, a fingerprint that no line moves, a category by hardware."""
    (log,) = json.loads(sarif(RUN))["runs"]
    rules = [rule["id"] for rule in log["tool"]["driver"]["rules"]]
    assert rules == ["not judged", "temp_bytes"]
    first, second = log["results"]
    assert [rules[result["ruleIndex"]] for result in log["results"]] == [first["ruleId"], second["ruleId"]]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/my%20model.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 17},
    }
    assert first["message"]["text"].splitlines()[0] == "REGRESSED train/step: remat is lost at my model.py:17"
    assert "found     temp_bytes" in first["message"]["text"]
    (moved,) = json.loads(sarif(run(2, case(**RED | {"line": "src/my model.py:18"}))))["runs"]
    assert moved["results"][0]["partialFingerprints"] == first["partialFingerprints"] != second["partialFingerprints"]
    assert log["automationDetails"]["id"].startswith("jaxgate/")
    assert json.loads(sarif(QUIET))["runs"][0]["results"] == []


def test_gitlab_has_a_list():
    """The five keys that it reads; an empty list where nothing is red."""
    first, _ = json.loads(code_quality(RUN))
    assert first.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
    assert first["location"] == {"path": "src/my model.py", "lines": {"begin": 17}}
    assert json.loads(code_quality(QUIET)) == []


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a.py:17", "a.py:17"),
        ("a.py:19", "a.py:17"),
        ("a.py:30", "a.py:31"),
        (f"a.py:{32 + FAR}", f"a.py:{32 + FAR}"),
        ("b.py:3", "b.py:3"),
        ("tests/test_a.py", "tests/test_a.py"),
    ],
)
def test_it_is_shown_at_the_edit(line, shown):
    """Hosts show what is said of lines that a change has touched; what is far away is left where it is."""
    assert in_the_diff(line, {"a.py": [16, 17, 31]}) == shown


def test_a_file_may_have_any_name():
    assert place("a:b.py:7") == ("a:b.py", 7)
    assert place("a:b.py") == ("a:b.py", 1)
