"""What a run makes of its history: today's run is part of the drift, and nothing that goes wrong is silently green."""

from dataclasses import replace
from datetime import date

import pytest
from support.factories import CASE, decision, measurement, record
from support.history_points import FOLDER, Past, named, point

from jaxgate.ext.history.budget import NO_STORE, DriftBudget, point_of
from jaxgate.ext.history.drift import DriftStart
from jaxgate.judge.figures import figures_of
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status

TODAY = date(2026, 11, 25)


def verdict_of(facts=None, **changes):
    """A case as judged by this run alone, with its figures."""
    now, stored = measurement(facts=facts), record()
    judged = judge(CASE, (), now, stored, strict=True, **changes)

    return replace(judged, figures=figures_of(now, stored))


def judged(verdict, past, budget=0.1, starts=()):
    """The verdict with its drift."""
    service = DriftBudget(
        budget, past, starts, today=TODAY, moment=lambda: "2026-11-25T02:30:00+00:00", commit=lambda: "abc"
    )
    return service.judge(verdict, FOLDER, (), strict=True)


def earlier(**figures):
    """A run of the same program and baseline, three days before."""
    known = verdict_of().figures
    return point(
        0, known.program, known.baseline, figures=dict(known.now) | figures, moment="2026-11-22T01:00:00+00:00"
    )


def test_without_a_budget_nothing_is_read():
    past = Past()
    verdict = verdict_of()
    assert judged(verdict, past, budget=None) is verdict
    assert past.asked == []


def test_growth_since_the_first_run_is_red():
    """Today's baseline has it too, so that the gate alone is green."""
    verdict = verdict_of()
    assert not verdict.fails
    past = Past(earlier(temp_bytes=10_000))
    red = judged(verdict, past)
    assert (red.status, red.fails) == (Status.REGRESSED, True)
    assert [(one.kind, one.name) for one in red.findings if one.status is Status.REGRESSED] == [("drift", "temp_bytes")]
    assert past.asked == [(CASE, FOLDER)]
    start = DriftStart(case=CASE, since=date(2026, 11, 23), owner="perf-team", reason="issue 7")
    assert judged(verdict, past, starts=[start]).status is Status.SAME
    assert judged(verdict, Past(earlier())).status is Status.SAME


@pytest.mark.parametrize("past", [None, Past(error=OSError("the file is locked")), Past(error=ValueError())])
def test_a_history_that_cannot_be_read_fails_the_case(past):
    """INVALID: a budget that cannot be checked is not kept; what else was found stays."""
    red = judged(verdict_of({"temp_bytes": 90_000}), past)
    assert (red.status, red.fails) == (Status.INVALID, True)
    why = NO_STORE if past is None else str(past.error) or "ValueError"
    assert red.worst is not None
    assert red.worst.detail.endswith(f": {why}")
    assert any(one.kind == "fact" and one.status is Status.REGRESSED for one in red.findings)


def test_a_case_without_a_baseline_has_no_drift():
    verdict = judge(CASE, (), measurement(), None, strict=True)
    assert judged(verdict, Past()) is verdict


def test_a_slow_down_counts_once_it_is_not_waiting():
    """Fresh processes still decide about SLOWER; SAME by a duel is a ratio."""
    for status, ratio in ((Status.SLOWER, None), (Status.SAME, 1.25), (Status.UNDECIDED, 1.25)):
        verdict = verdict_of(decision=decision(status))
        found = point_of(verdict_of(), FOLDER, moment="m", commit=None)
        assert found.ratio is None

        known = (
            verdict.time if verdict.time.decision else replace(verdict.time, decision=decision(status), status=status)
        )
        assert point_of(replace(verdict, time=known), FOLDER, moment="m", commit=None).ratio == ratio


def test_todays_ratio_is_multiplied_with_what_was_accepted():
    verdict = verdict_of()
    timed = replace(verdict, time=replace(verdict.time, status=Status.SAME, decision=decision(Status.SAME)))
    baseline = verdict.figures.baseline
    first = named("p0", 0)
    refresh = point(1, baseline.program, first, 1.1, recorded="refreshed")
    found = [one for one in judged(timed, Past(refresh)).findings if one.kind == "drift"]
    assert [one.now for one in found] == [pytest.approx(1.1 * 1.25)]
    assert found[0].status is Status.REGRESSED
