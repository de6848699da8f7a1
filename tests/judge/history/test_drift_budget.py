"""The budget: what is beyond it, what may be, what is not known, and where one begins anew."""

from datetime import date

import pytest
from support.history_points import CASE, day, named, point, refreshes

from jaxgate.ext.history.budget import BEGIN_ANEW, NO_HISTORY, judge_drift, since_accepted
from jaxgate.ext.history.drift import Drift, DriftStart, FactDrift
from jaxgate.model.decision import Status
from jaxgate.model.workload import Tolerance

BASELINE = named("p0", 0)


def facts(*found):
    """Runs of one program with these facts."""
    return tuple(point(number, "p0", BASELINE, figures=figures) for number, figures in enumerate(found))


def one(findings):
    """The only finding."""
    (found,) = findings
    return found


def test_many_accepted_losses_are_red_together():
    """Twelve of 0.8 % make 10 % [4.5, 16]: beyond 4 %, perhaps beyond 9 %, within 11 %; each was green."""
    history = refreshes(*[1.008] * 12)
    red = one(judge_drift(history, 0.04))
    assert (red.kind, red.name, red.status, red.detail) == ("drift", "time", Status.REGRESSED, BEGIN_ANEW)
    assert (red.now, red.against, red.allowed) == (pytest.approx(1.008**12), 1.0, 1.04)
    assert isinstance(red.drift, Drift)
    perhaps = one(judge_drift(history, 0.09))
    assert perhaps.status is Status.UNDECIDED
    assert perhaps.detail == "its interval does not show it to be beyond the budget"
    assert judge_drift(history, 0.11) == []
    *known, _ = refreshes(1.04)
    assert judge_drift(refreshes(1.04), 0.06) == []
    assert one(judge_drift((*known, point(2, "p2", named("p1", 1), 1.06)), 0.06)).status is Status.REGRESSED


def test_a_gap_is_never_silently_green():
    """UNDECIDED with both baselines and what to do; red where what is known since is beyond by itself."""
    before = point(0, "p0", BASELINE)
    history = (before, point(2, "p1", named("p1", 1)))
    assert judge_drift(history, 0.1, timed=False) == [], "no clock speaks of what is compiled for a target"
    calm = one(judge_drift(history, 0.1))
    assert calm.status is Status.UNDECIDED
    assert calm.drift.gap.startswith("no duel holds the baseline of 2026-03-03 (01010101")
    assert calm.detail == f"the drift from before is unknown; {BEGIN_ANEW}"
    assert one(judge_drift((before, point(2, "p2", named("p1", 1), 1.3)), 0.1)).status is Status.REGRESSED


def test_a_case_without_a_history_passes_and_says_so():
    """SAME, with words; an imported or foreign run is none."""
    today = point(3, "p0", BASELINE)
    for past in (
        (),
        (point(1, "p0", BASELINE, source="pytest-benchmark"),),
        (point(1, "p0", BASELINE, elsewhere="x"),),
    ):
        found = one(judge_drift((*past, today), 0.1))
        assert (found.status, found.detail, found.now) == (Status.SAME, NO_HISTORY, None)


@pytest.mark.parametrize(
    ("name", "first", "now", "red"),
    [
        ("temp_bytes", 1_000_000, 1_110_000, True),
        ("temp_bytes", 1_000_000, 1_100_000, False),
        ("temp_bytes", 1_000, 4_000, False),  # within the bytes that a gate lets pass at once
        ("stablehlo_ops", 100, 160, False),  # one gate lets half pass
        ("stablehlo_ops", 100, 180, True),
        ("traces", 1, 2, True),
        ("aliased_bytes", 1_000_000, 10, False),  # less is worse there
        ("sent_bytes", 0, 2_000_000, True),
    ],
)
def test_facts_count_as_values(name, first, now, red):
    """Growth beyond a budget of 10 %, never stricter than a single gate."""
    found = judge_drift(facts({name: first}, {name: now}), 0.1)
    assert [(one.name, one.status, one.now, one.against) for one in found] == (
        [(name, Status.REGRESSED, now, first)] if red else []
    )
    assert all(isinstance(one.drift, FactDrift) for one in found)


def test_a_tolerance_of_the_workload_counts():
    """A fact that may move by half at once may move by half in all."""
    history = facts({"temp_bytes": 1_000_000}, {"temp_bytes": 1_300_000})
    own = Tolerance(fact="temp_bytes", relative=0.5, why="the library chooses")
    assert one(judge_drift(history, 0.1)).allowed == pytest.approx(1_104_096)
    assert judge_drift(history, 0.1, [own]) == []


def test_what_was_accepted_is_not_counted_again():
    """From the day of the entry on; of two the later; a day to come and another case accept nothing."""

    def start(number, case=CASE):
        return DriftStart(case=case, since=date.fromisoformat(day(number)), owner="perf-team", reason="issue 7")

    history = refreshes(1.1, 1.1)
    today = date.fromisoformat(day(3))
    assert since_accepted(history, CASE, [], today) == history
    assert since_accepted(history, CASE, [start(2), start(1)], today) == history[1:]
    assert since_accepted(history, CASE, [start(4)], today) == history
    assert since_accepted(history, CASE, [start(3, "scan/other")], today) == history
    assert one(judge_drift(history, 0.15)).status is Status.REGRESSED
    assert judge_drift(since_accepted(history, CASE, [start(2)], today), 0.15) == []
