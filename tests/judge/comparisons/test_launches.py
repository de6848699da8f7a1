"""Two environments compared by launches: separated only where every launch agrees."""

import random
from dataclasses import replace
from itertools import combinations
from math import comb
from statistics import median

import pytest
from support.factories import CASE, ENVIRONMENT, PHASES, baseline, measurement

from jaxgate.ext.upgrade.launches import MIN_LAUNCHES, compare_phases, decide_launches, judge_environment
from jaxgate.model.baseline import Launches
from jaxgate.model.claim import claim
from jaxgate.model.decision import Status
from jaxgate.model.duel import BrokenDuelError
from jaxgate.model.machine import HardwareKey
from jaxgate.model.numbers import Phases, Samples

QUIET = [1000.0e3, 1001.0e3, 1002.0e3, 1003.0e3, 1004.0e3]
OTHER = {**ENVIRONMENT, "jax": "0.12.0"}


def times(values, **changes):
    """A baseline for each launch, one burst of one call."""
    return tuple(baseline(samples=Samples(bursts_ns=(round(value),), calls_per_burst=1), **changes) for value in values)


def launches(here=QUIET, **there_changes):
    """Launches of both sides; changes go to the other environment."""
    return Launches(here=times(here), there=times(QUIET, **there_changes), why_not="")


def times_by(factor, count=5):
    """Quiet launches that take this many times as long."""
    return [value * factor for value in QUIET[:count]]


HIDDEN = "launches differ among themselves"


@pytest.mark.parametrize(
    ("here", "there", "status", "reason"),
    [
        (QUIET, QUIET, Status.SAME, "detectable slow-down 3.7%"),
        (times_by(1.05), QUIET, Status.SLOWER, "every launch was more than 3.0% slower"),
        (QUIET, times_by(1.05), Status.FASTER, "every launch was more than 3.0% faster"),
        (times_by(2.0), QUIET, Status.SLOWER, "every launch"),
        # One quick launch on the slow side is enough to doubt: it is not the same either.
        ([1000e3, *[1200e3] * 4], QUIET, Status.UNDECIDED, HIDDEN),
        # Tight launches, 2.9 % apart at the edges and 3.2 % at the centre.
        (
            [1032e3 + x for x in range(5)],
            [*[1000e3] * 4, 1003e3],
            Status.UNDECIDED,
            "neither within nor beyond the margin of 3.0%",
        ),
        # Chance alone could do that.
        *[
            (times_by(2.0, few), times_by(1.0, few), Status.UNDECIDED, "of each decide nothing, 4 are needed")
            for few in range(1, MIN_LAUNCHES)
        ],
        # 500 ns a call is nothing that anybody gates on: at 5 µs the margin is 10 %.
        ([5400.0] * 5, [5000.0] * 5, Status.UNDECIDED, "detectable slow-down"),
        ([5600.0] * 5, [5000.0] * 5, Status.SLOWER, "more than 10.0% slower"),
    ],
)
def test_a_side_is_slower_where_every_launch_is(here, there, status, reason):
    decision = decide_launches(here, there)
    assert (decision.status, decision.pairs) == (status, len(here))
    assert reason in decision.reason
    assert decision.ratio == pytest.approx(median(here) / median(there))


def test_what_would_have_shown_is_said():
    assert decide_launches(QUIET, QUIET).sees == pytest.approx(1.03 * (1004 / 1000) ** 1.58 - 1)  # 1.58: for power 0.9


def test_the_false_alarm_rate_is_that_of_the_rank_test():
    """Of all ways to deal ten different times to two sides, one makes the first side slower throughout."""
    pool = [1000e3 * 1.1**k for k in range(10)]  # neighbours are further apart than the margin
    alarms = 0
    for chosen in combinations(range(10), 5):
        here = [pool[i] for i in chosen]
        there = [pool[i] for i in range(10) if i not in chosen]
        alarms += decide_launches(here, there).status is Status.SLOWER
    assert (alarms, comb(10, 5)) == (1, 252)


def test_noise_never_becomes_same():
    """Launches of one environment that spread by tens of per cent: never SAME, rarely anything else."""
    draw = random.Random(7)
    found = [
        decide_launches(*([1e6 * draw.lognormvariate(0, 0.3) for _ in range(5)] for _ in range(2))).status
        for _ in range(500)
    ]
    assert found.count(Status.SAME) == 0
    assert found.count(Status.SLOWER) + found.count(Status.FASTER) <= 8  # 2 in 252 expected of 500: 4


SILENT = (baseline(samples=None),) * 5


def judged(found, claims=(), **changes):
    """The verdict of a case, of whose measurement something is changed."""
    return judge_environment(CASE, claims, measurement(**changes), found, other="x")


def test_a_clock_that_stands_still_is_refused():
    """A time of zero makes no ratio: an error, and INVALID for the case."""
    with pytest.raises(BrokenDuelError, match="expected positive times, found 0"):
        decide_launches([0, 1, 1, 1], [1, 1, 1, 1])
    verdict = judged(launches(here=[0] * 5))
    assert (verdict.status, verdict.fails) == (Status.INVALID, True)


def test_a_launch_without_a_time_is_not_left_out():
    """Of five launches one recorded none: INVALID, as what is left would be judged as if it were all of them."""
    verdict = judged(Launches(here=(*times(QUIET[1:]), SILENT[0]), there=times(QUIET), why_not=""))
    assert verdict.status is Status.INVALID
    assert verdict.time.reason == "4 of 5 launches here recorded a time, 5 of 5 there"


def test_with_the_clock_switched_off_nothing_is_said_of_time():
    """No launch recorded a time and none was asked for: UNDECIDED with the reason, and facts are compared."""
    time = judged(Launches(here=SILENT, there=SILENT, why_not=""), samples=None).time
    assert (time.status, time.reason) == (Status.UNDECIDED, "the clock is switched off (--benchmark-disable)")


def with_compile(values):
    """Baselines with these compile times."""
    return [baseline(phases=Phases(compile_ns=value, trace_ns=1, lower_ns=1, first_call_ns=1)) for value in values]


@pytest.mark.parametrize(
    ("here", "there", "status"),
    [
        ([134_000_000] * 5, [100_000_000] * 5, Status.SAME),
        ([136_000_000] * 5, [100_000_000] * 5, Status.REGRESSED),
        ([*[300_000_000] * 4, 100_000_000], [100_000_000] * 5, Status.SAME),
        ([60_000_000] * 5, [100_000_000] * 5, Status.IMPROVED),
        ([1_000_000] * 5, [100] * 5, Status.SAME),  # 1 ms: ten thousand times, and nothing
    ],
)
def test_phases_need_a_relative_and_an_absolute_difference(here, there, status):
    """Compiling is worse beyond 15 % and 20 ms, by the best launch here against the worst there."""
    found = {finding.name: finding.status for finding in compare_phases(with_compile(here), with_compile(there))}
    assert found["compile_ns"] is status


def test_phases_of_few_launches_or_of_a_cache_are_not_judged():
    """Three launches, or an executable out of a cache, give no finding on compiling."""
    few = [PHASES.compile_ns] * 3
    assert list(compare_phases(with_compile(few), with_compile(few))) == []
    names = [f.name for f in compare_phases(with_compile([None] * 5), with_compile([1] * 5))]
    assert names == ["trace_ns", "lower_ns", "first_call_ns"]


def test_a_slow_down_fails_without_more_processes():
    """Launches are fresh processes already: SLOWER stands."""
    verdict = judged(launches(here=[2e6] * 5))
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)


@pytest.mark.parametrize("side", ["here", "there"])
def test_a_side_that_recorded_nothing_is_invalid(side):
    """No launch of one side has the case: INVALID with what failed there, never green."""
    verdict = judged(replace(launches(), **{side: ()}, why_not="there: boom"))
    assert (verdict.status, verdict.fails, verdict.worst.detail) == (Status.INVALID, True, "there: boom")


def test_facts_that_vary_between_launches_are_invalid():
    """A fact with two values in one environment cannot be compared with anything."""
    found = launches()
    verdict = judged(replace(found, there=(*found.there[:-1], baseline(facts={"temp_bytes": 1}))))
    assert verdict.status is Status.INVALID
    assert "launches there differ among themselves (1, 20000)" in verdict.worst.detail


def test_claims_hold_in_every_environment():
    """A claim that is broken here is red, whatever the other side does."""
    verdict = judged(launches(), (claim("temp_bytes <= 0.5 * argument_bytes"),))
    assert (verdict.status, verdict.worst.kind) == (Status.REGRESSED, "claim")


def test_virtual_devices_are_not_timed():
    """Several CPU devices share the cores: facts are judged, time is UNDECIDED with the reason, on any machine."""
    many = HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=8)
    time = judged(launches(here=[2e6] * 5), hardware=many).time
    assert (time.status, time.anywhere) == (Status.UNDECIDED, True)
    assert "share their cores" in time.reason


def test_other_arguments_are_listed():
    """An environment that makes other arguments (x64) says which."""
    state, batch = baseline().signature
    verdict = judged(launches(signature=(state, replace(batch, aval="float64[8,64]"))))
    assert "argument batch: float64[8,64] → float32[8,64]" in verdict.origin.differences


def test_products_of_wider_floats_are_red_between_environments_too():
    """The other jax multiplied bfloat16 where this one multiplies float32: as many FLOPs, and slower on every accelerator."""
    there = baseline(matmuls={"bfloat16[8,64] x bfloat16[64,64]": 3}, environment=OTHER)
    verdict = judged(Launches(here=(baseline(),), there=(there,), why_not=""))
    assert verdict.status is Status.REGRESSED
    assert "wider_products" in {finding.name for finding in verdict.findings if finding.status is Status.REGRESSED}
