"""A budget for drift through the real plugin: red over many accepted losses, never green where the history fails."""

import re

import pytest
from support.corpora import nightly
from support.fakes import duel, folder_here
from support.history_points import Past
from support.projects import NO_OTHERS, TWO, model

from jaxgate.ext.history.model import HistoryPoint
from jaxgate.model.verdict import BaselineName

BUDGET = "--override-ini=perf_drift_budget=10%"


@pytest.fixture
def recorded(project, monkeypatch):
    """Two recorded cases of which nothing is stored."""
    monkeypatch.setenv("JAXGATE_BUDGET", "0")  # time is not what this is about
    project.write("test_model.py", model("jnp.ones(64)", step="x * 2", other="x + 1")).record()
    project.instruments["open_history"] = lambda *_: Past()
    return project


def remember(project, case="model/step", **figures):
    """A run of a case from a week ago, like today's but for these figures."""
    project.run()
    (known,) = [one["figures"] for one in project.results()["cases"] if one["case"] == case]
    baseline = BaselineName(**known["baseline"])
    point = HistoryPoint(
        run="1",
        moment="2026-11-13T12:00:00+00:00",
        case=case,
        folder=folder_here(),
        status="SAME",
        program=known["program"],
        baseline=baseline,
        time_status="SAME",
        figures=known["now"] | figures,
    )
    project.instruments["open_history"] = lambda *_: Past(point)


def test_an_accumulated_loss_is_red_though_the_baseline_has_it(recorded):
    """The result is twice as large as a week ago; each refresh was accepted. Without the option the run is green."""
    remember(recorded, output_bytes=128)
    recorded.run().counts(passed=2)
    result = recorded.run(BUDGET)
    result.counts(passed=1, failed=1)
    assert result.code == 1
    result.shows(
        "REGRESSED  model/step",
        "drift: output_bytes 128 B → 256 B = 2.00 × in 1 step since 2026-11-13, allowed 205 B in all; accept it with a "
        "[[drift]] entry in waivers.toml",
    )
    (case,) = [one for one in recorded.results()["cases"] if one["case"] == "model/step"]
    (finding,) = case["findings"]
    assert (finding["kind"], finding["name"], finding["now"], finding["against"]) == ("drift", "output_bytes", 256, 128)
    assert "since 2026-11-13" in finding["detail"]
    assert "since 2026-11-13" in (recorded.path / "perf-artifacts/summary.md").read_text()


def test_cases_without_a_history_are_named_and_pass(recorded):
    remember(recorded)
    result = recorded.run(BUDGET)
    result.counts(passed=2)
    result.shows("DRIFT BUDGET: 1 case has no history here yet, so that no drift was held against it: model/other")


def test_a_history_that_cannot_be_read_is_no_green_run(recorded):
    """Also where nothing is kept at all; a run that records asks for none."""
    for past in (Past(error=OSError("history.sqlite is locked")), None):
        recorded.instruments["open_history"] = lambda *_, past=past: past
        result = recorded.run(BUDGET)
        assert result.code == 1
        result.shows(
            "INVALID  model/step", "the history cannot be read, so that no drift can be held against its budget"
        )
        recorded.run().counts(passed=2)
    recorded.run(BUDGET, "--perf-update").counts(passed=2)


def test_an_accepted_drift_begins_anew(recorded):
    """An entry in the file of waivers, with its day; a typo in it ends the run before its first test."""
    remember(recorded, output_bytes=128)
    entry = '[[drift]]\ncase = "model/step"\nsince = 2026-11-14\nowner = "perf-team"\nreason = "issue 31"\n'
    recorded.write("baselines/waivers.toml", entry)
    recorded.run(BUDGET).counts(passed=2)
    recorded.write("baselines/waivers.toml", entry.replace("since", "from"))
    assert recorded.run(BUDGET).code == 4


@pytest.mark.parametrize("value", ["10", "0", "-5%", "much", "nan%"])
def test_a_budget_is_a_share(project, value):
    expected = f"perf_drift_budget (JAXGATE_DRIFT_BUDGET): expected a share such as 10% or 0.1, found {value!r}"
    with pytest.raises(pytest.UsageError, match=re.escape(expected)):
        project.pytester.parseconfigure(*NO_OTHERS, f"--override-ini=perf_drift_budget={value}")


def test_the_log_has_the_worst_figure_of_each_refresh(recorded):
    """4 operations more are within their tolerance: no reason is asked for, and the log has them."""
    recorded.edit("test_model.py", "return x * 2", "return x * 2 + 1")
    result = recorded.run("--perf-update")
    assert "REASON WANTED" not in result.text
    (entry,) = [entry for entry in recorded.log() if "refreshed" in entry]
    assert "`model/other`, `model/step` (" in entry
    assert "against" in entry
    assert "allowed" not in entry


@nightly
def test_refreshes_that_were_each_within_tolerance_add_up(project, lab, monkeypatch):
    """Six losses of 2.5 % are six green refreshes; together they are beyond a budget of 10 %, by the stored history."""
    monkeypatch.delenv("JAXGATE_HISTORY")
    moments = (f"2026-11-{day:02}T12:00:00+00:00" for day in range(1, 30))
    lab.instruments["moment"] = lambda: next(moments)
    project.write("test_model.py", TWO).run("--perf-update")
    lab.finds["baseline"] = duel(1.025)
    for factor in range(3, 9):
        project.edit("test_model.py", f"x * {factor - 1}", f"x * {factor}")
        project.run("--perf-update", "--perf-why", "a step").counts(passed=2)
        project.run().counts(passed=2)
    result = project.run(BUDGET)
    result.counts(passed=1, failed=1)
    result.shows(
        "REGRESSED  model/first", "over the last 6 accepted refreshes: 16 % [", "each was within its tolerance"
    )
    assert "second" not in " ".join(case["case"] for case in project.results()["cases"] if case["fails"])
