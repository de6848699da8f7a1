"""Stored times: the limit by textbook quantiles, what gates and what does not, and where they may speak at all."""

from dataclasses import replace
from math import exp, log, sqrt

import pytest
from support.factories import ENVIRONMENT, FINGERPRINTS, HARDWARE, SAMPLES, baseline, measurement, record, session

from jaxgate.ext.times.judge import decide_stored, may_answer, stored_limit, unlike_accepted
from jaxgate.judge.difference import Difference
from jaxgate.model.decision import Status
from jaxgate.model.duel import BrokenDuelError

CALL_NS = 1_000_000.0
NEWER = {**ENVIRONMENT, "jax": "0.12.0"}


def spread_sessions(count, spread):
    """Sessions around ``CALL_NS`` whose log medians have exactly this standard deviation: half above, half below.

    ``count`` values of +-a have the sample variance ``a^2 count / (count - 1)``; one odd value sits in the middle.
    """
    pairs = count // 2
    step = spread * sqrt((count - 1) / (2 * pairs))
    logs = [step] * pairs + [-step] * pairs + [0.0] * (count % 2)
    return [session(CALL_NS * exp(value)) for value in logs]


# The limit


@pytest.mark.parametrize(
    ("count", "multiplier"),
    # t at 0.995 from the usual tables: 9.925 (2), 4.604 (4), 3.250 (9), 2.861 (19), times sqrt(1 + 1/K)
    [(3, 9.925 * sqrt(4 / 3)), (5, 5.04), (10, 3.41), (20, 2.93)],
)
def test_the_limit_is_a_prediction_interval(count, multiplier):
    """Location plus t(K-1, 0.995) s sqrt(1 + 1/K), with s = 2 %."""
    found = stored_limit(spread_sessions(count, 0.02))
    assert found.spread == pytest.approx(0.02)
    assert exp(found.location) == pytest.approx(CALL_NS)
    assert found.limit == found.noise == pytest.approx(multiplier * 0.02, rel=2e-3)


@pytest.mark.parametrize(
    ("sessions", "limit"),
    [
        ([session()] * 3, 0.03438),  # a spread of 0.3 %, not of nothing: 9.925 * 0.003 * 1.1547
        (spread_sessions(20, 0.003), log(1.03)),  # 0.88 % by the sessions, 3 % by the margin
        ([session(10_000.0)] * 20, log(1.05)),  # half a microsecond never gates
        ([session(100.0)] * 20, log(1.15)),  # where the margin ends
    ],
)
def test_sessions_that_agree_by_chance_are_not_believed(sessions, limit):
    assert stored_limit(sessions).limit == pytest.approx(limit, abs=2e-5)


@pytest.mark.parametrize(
    ("count", "why_not"),
    [
        (0, "no session, 3 are needed"),
        (1, "1 session over 1 day, 3 are needed"),
        (2, "2 sessions over 1 day, 3 are needed"),
        (3, ""),
    ],
)
def test_fewer_than_three_sessions_do_not_gate(count, why_not):
    """They say how many there are and how many are needed; there is no limit to pass by."""
    found = stored_limit([session()] * count)
    assert found.why_not == why_not
    assert not found.is_noisy


@pytest.mark.parametrize(("spread", "noisy"), [(0.0299, False), (0.0301, True)])
def test_a_noisy_case_does_not_gate(spread, noisy):
    """A spread above 3 % is named, and nothing can be decided by it."""
    found = stored_limit(spread_sessions(10, spread))
    assert found.is_noisy is noisy
    assert found.why_not == ("10 sessions over 1 day, spread 3.0%: too noisy to gate, 3% may be" if noisy else "")
    if noisy:
        with pytest.raises(ValueError, match="too noisy to gate"):
            decide_stored(found, CALL_NS)


# The decision

TEN = stored_limit(spread_sessions(10, 0.012))
"""Ten sessions of spread 1.2 %: the limit is 3.408 * 0.012 = 4.09 % in logarithms, +4.2 % as a ratio."""


@pytest.mark.parametrize(
    ("ratio", "status"),
    [
        (0.95, Status.FASTER),
        (0.97, Status.SAME),
        (1.0, Status.SAME),
        (1.041, Status.SAME),
        (1.043, Status.SLOWER),
        (2.0, Status.SLOWER),
    ],
)
def test_beyond_the_limit_and_within(ratio, status):
    assert decide_stored(TEN, CALL_NS * ratio).status is status


def test_the_decision_says_what_it_is_made_of():
    """Both numbers, the interval, the limit, and what would have been seen 9 times in 10 (1.28 s above the limit)."""
    found = decide_stored(TEN, CALL_NS * 1.1)
    assert found.reason == "stored times: 10 sessions over 1 day, limit +4.2%"
    assert (found.now_ns, found.baseline_ns) == pytest.approx((1.1 * CALL_NS, CALL_NS))
    assert found.ratio == pytest.approx(1.1)
    assert found.low == pytest.approx(1.1 * exp(-0.0409), rel=1e-4)
    assert found.high == pytest.approx(1.1 * exp(0.0409), rel=1e-4)
    assert found.margin == pytest.approx(exp(0.0409) - 1, abs=1e-4)
    assert found.sees == pytest.approx(exp(0.0409 + 1.2816 * 0.012) - 1, abs=1e-4)
    assert found.pairs == 10
    assert decide_stored(TEN, CALL_NS).reason.endswith("limit +4.2%, detectable slow-down 5.8%")
    dates = ["2026-11-18", "2026-11-18", "2026-11-19", "2026-11-20", "2026-11-20"]
    assert stored_limit([session(date=date) for date in dates]).described == "5 sessions over 3 days"


def test_a_wide_limit_is_not_same():
    """Five sessions of spread 2 % see 13.5 %, which is more than 10 %: UNDECIDED, though a doubling is SLOWER."""
    wide = stored_limit(spread_sessions(5, 0.02))
    found = decide_stored(wide, CALL_NS)
    assert found.status is Status.UNDECIDED
    assert found.sees == pytest.approx(exp(5.0435 * 0.02 + 1.2816 * 0.02) - 1, abs=1e-4)
    assert "detectable slow-down 13.5%, 10% is asked for" in found.reason
    assert decide_stored(wide, 2 * CALL_NS).status is Status.SLOWER


@pytest.mark.parametrize("now_ns", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_decides_nothing(now_ns):
    """The clock stood still or went back: an error, not a FASTER; in a session its logarithm would poison the limit."""
    with pytest.raises(BrokenDuelError, match="expected a positive time"):
        decide_stored(TEN, now_ns)
    with pytest.raises(ValueError, match="run_ns must be a positive number"):
        session(now_ns)


# Which sessions count


@pytest.mark.parametrize(
    "other",
    [
        session(fingerprints=replace(FINGERPRINTS, program="p1")),
        session(fingerprints=replace(FINGERPRINTS, options="x")),
        session(fingerprints=replace(FINGERPRINTS, inputs="i1")),
        session(fingerprints=replace(FINGERPRINTS, source="s1")),
        session(environment=NEWER),
        session(contract="latency"),
    ],
    ids=["program", "options", "inputs", "source", "environment", "contract"],
)
def test_a_session_of_another_baseline_does_not_count(other):
    """What was accepted since is held against nothing older: a refreshed baseline asks for new sessions."""
    assert session().is_of(baseline())
    assert not other.is_of(baseline())
    unknown = replace(FINGERPRINTS, options=None)  # two unknowns are not one and the same
    assert not session(fingerprints=unknown).is_of(baseline(fingerprints=unknown))


# Where stored times may speak

CHANGED = replace(FINGERPRINTS, program="p1")


@pytest.mark.parametrize(
    ("now", "duelled", "may"),
    [
        (measurement(), False, False),  # identical: SAME without a clock
        (measurement(environment=NEWER), True, True),  # the duel let a program meet itself
        (measurement(environment=NEWER), False, True),
        (measurement(environment=NEWER, fingerprints=replace(FINGERPRINTS, source="s1")), True, True),
        (measurement(fingerprints=CHANGED), True, False),  # the duel has answered
        (measurement(fingerprints=CHANGED, environment=NEWER), True, False),
        (measurement(fingerprints=CHANGED), False, True),
        (measurement(facts={"host_callbacks": 1}), False, True),  # it calls Python
        (measurement(environment=NEWER, samples=None), False, False),
        (measurement(environment=NEWER, samples=replace(SAMPLES, calls_per_burst=1, contract="latency")), False, False),
    ],
)
def test_where_they_may_answer(now, duelled, may):
    """Only where neither identity nor a duel answers."""
    assert may_answer(Difference(now, record().baseline), record(), duelled=duelled) is may


def test_other_input_values_are_not_what_was_timed():
    """The sessions were fed with the baseline's values, on its hardware, whose cores no other device shared."""
    now, virtual = measurement(environment=NEWER), replace(HARDWARE, devices=8)
    looped = replace(now, fingerprints=replace(FINGERPRINTS, inputs="i1"))  # until it converges, perhaps
    assert not may_answer(Difference(looped, record().baseline), record(), duelled=False)
    assert not may_answer(Difference(now, record(borrowed=True).baseline), record(borrowed=True), duelled=False)
    assert not may_answer(
        Difference(replace(now, hardware=virtual), record(hardware=virtual).baseline),
        record(hardware=virtual),
        duelled=False,
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"fingerprints": replace(FINGERPRINTS, source="s1")}, ""),
        ({"fingerprints": CHANGED}, "its program changed since the baseline"),
        ({"fingerprints": replace(FINGERPRINTS, options="x")}, "its compiler options changed"),
        ({"fingerprints": replace(FINGERPRINTS, options=None)}, "its compiler options are unknown"),
        ({"fingerprints": replace(FINGERPRINTS, inputs="i1")}, "its inputs changed"),
        ({"environment": NEWER, "fingerprints": CHANGED}, "its program and environment changed"),
        (
            {"fingerprints": replace(FINGERPRINTS, source="s1"), "facts": {"host_callbacks": 1}},
            "its source (it calls Python) changed",
        ),
        (
            {"fingerprints": replace(FINGERPRINTS, source="s1"), "facts": {"host_callbacks": None}},
            "its source (it calls Python) changed",
        ),
    ],
)
def test_only_the_accepted_program_is_recorded(changes, why):
    """A session of another program, or in another environment, says what differs; a refactored source does not."""
    found = unlike_accepted(baseline(**changes), baseline())
    assert found.startswith(why) if why else found == ""
    unknown = baseline(fingerprints=replace(FINGERPRINTS, source=None), facts={"host_callbacks": 1})
    assert "source" in unlike_accepted(unknown, unknown)  # nothing covers the Python behind a callback
