"""Two environments compared by launches: separated only where every launch agrees."""

import random
from dataclasses import replace
from itertools import combinations
from math import comb

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


def test_identical_environments_are_same():
    """The same times on both sides: SAME, and the smallest slow-down that would have shown is said."""
    decision = decide_launches(QUIET, QUIET)
    assert (decision.status, decision.ratio, decision.pairs) == (Status.SAME, 1.0, 5)
    assert decision.sees == pytest.approx(1.03 * (1004 / 1000) ** 1.58 - 1)  # 1.58: for power 0.9
    assert decision.reason == "detectable slow-down 3.7%"


@pytest.mark.parametrize("factor", [1.05, 1.1, 2.0])
def test_a_planted_slow_down_is_seen_and_swapping_turns_it_round(factor):
    """Every launch beyond every other by more than the margin is SLOWER; seen from the other side it is FASTER."""
    slow = [value * factor for value in QUIET]
    assert decide_launches(slow, QUIET).status is Status.SLOWER
    assert decide_launches(QUIET, slow).status is Status.FASTER
    assert decide_launches(slow, QUIET).ratio == pytest.approx(factor)


def test_one_launch_that_overlaps_is_enough_to_doubt():
    """A single quick launch on the slow side: not SLOWER, and not SAME either."""
    decision = decide_launches([1000e3, 1200e3, 1200e3, 1200e3, 1200e3], QUIET)
    assert decision.status is Status.UNDECIDED
    assert "launches differ among themselves" in decision.reason


def test_a_difference_about_the_margin_is_undecided():
    """Tight launches 2.9 % apart at the edges and 3.2 % at the centre: neither within nor beyond the margin."""
    decision = decide_launches([1032e3 + x for x in range(5)], [1000e3, 1000e3, 1000e3, 1000e3, 1003e3])
    assert decision.status is Status.UNDECIDED
    assert decision.reason == "neither within nor beyond the margin of 3.0%"


@pytest.mark.parametrize("count", range(1, MIN_LAUNCHES))
def test_few_launches_tell_nothing(count):
    """With fewer than four of each, times twice as long are UNDECIDED: chance alone could do that."""
    decision = decide_launches([value * 2 for value in QUIET[:count]], QUIET[:count])
    assert decision.status is Status.UNDECIDED
    assert "of each decide nothing, 4 are needed" in decision.reason


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


def test_short_calls_have_a_floor():
    """500 ns a call is nothing that anybody gates on: at 5 µs the margin is 10 %."""
    assert decide_launches([5400.0] * 5, [5000.0] * 5).status is not Status.SLOWER
    assert decide_launches([5600.0] * 5, [5000.0] * 5).status is Status.SLOWER


def test_a_clock_that_stands_still_is_refused():
    """A time of zero makes no ratio: an error, and INVALID for the case."""
    with pytest.raises(BrokenDuelError, match="expected positive times, found 0"):
        decide_launches([0, 1, 1, 1], [1, 1, 1, 1])
    verdict = judge_environment(CASE, (), measurement(), launches(here=[0] * 5), other="x")
    assert verdict.status is Status.INVALID
    assert verdict.fails


def test_a_launch_without_a_time_is_not_left_out():
    """Of five launches one recorded none: INVALID, as what is left would be judged as if it were all of them."""
    here = (*times(QUIET[1:]), baseline(samples=None))
    verdict = judge_environment(CASE, (), measurement(), Launches(here=here, there=times(QUIET), why_not=""), other="x")
    assert verdict.status is Status.INVALID
    assert verdict.time.reason == "4 of 5 launches here recorded a time, 5 of 5 there"


def test_with_the_clock_switched_off_nothing_is_said_of_time():
    """No launch recorded a time and none was asked for: UNDECIDED with the reason, and facts are compared."""
    silent = (baseline(samples=None),) * 5
    verdict = judge_environment(
        CASE, (), measurement(samples=None), Launches(here=silent, there=silent, why_not=""), other="x"
    )
    assert verdict.time.status is Status.UNDECIDED
    assert verdict.time.reason == "the clock is switched off (--benchmark-disable)"


def with_compile(values):
    """Baselines with these compile times."""
    return [baseline(phases=Phases(compile_ns=value, trace_ns=1, lower_ns=1, first_call_ns=1)) for value in values]


def compile_status(here, there):
    """The status of the compile phase."""
    return {f.name: f.status for f in compare_phases(with_compile(here), with_compile(there))}["compile_ns"]


def test_phases_need_a_relative_and_an_absolute_difference():
    """Compiling is worse beyond 15 % and 20 ms, by the best launch here against the worst there."""
    base = [100_000_000] * 5
    assert compile_status([134_000_000] * 5, base) is Status.SAME
    assert compile_status([136_000_000] * 5, base) is Status.REGRESSED
    assert compile_status([*[300_000_000] * 4, 100_000_000], base) is Status.SAME
    assert compile_status([60_000_000] * 5, base) is Status.IMPROVED
    assert compile_status([1_000_000] * 5, [100] * 5) is Status.SAME  # 1 ms: ten thousand times, and nothing


def test_phases_of_few_launches_or_of_a_cache_are_not_judged():
    """Three launches, or an executable out of a cache, give no finding on compiling."""
    few = [PHASES.compile_ns] * 3
    assert list(compare_phases(with_compile(few), with_compile(few))) == []
    names = [f.name for f in compare_phases(with_compile([None] * 5), with_compile([1] * 5))]
    assert names == ["trace_ns", "lower_ns", "first_call_ns"]


def test_an_aa_finds_nothing():
    """Two identical environments: SAME, no finding but SAME ones, nothing differs."""
    verdict = judge_environment(CASE, (), measurement(), launches(), other="itself")
    assert verdict.status is Status.SAME
    assert not verdict.fails
    assert {finding.status for finding in verdict.findings} == {Status.SAME}
    assert (verdict.origin.place, verdict.origin.differences) == ("environment", ())


def test_a_fact_that_moved_is_red_and_says_environment():
    """More temp bytes than there: REGRESSED, and the environment's differences come first."""
    verdict = judge_environment(
        CASE, (), measurement(facts={"temp_bytes": 80_000}), launches(environment=OTHER), other="jax==0.12.0"
    )
    assert verdict.status is Status.REGRESSED
    assert verdict.worst.name == "temp_bytes"
    assert verdict.origin.place == "environment"
    assert verdict.origin.differences[0] == "jax 0.12.0 → 0.10.2"
    assert verdict.baseline.described == "jax==0.12.0"


def test_a_slow_down_fails_without_more_processes():
    """Launches are fresh processes already: SLOWER stands."""
    verdict = judge_environment(CASE, (), measurement(), launches(here=[2e6] * 5), other="x")
    assert verdict.status is Status.SLOWER
    assert verdict.fails


@pytest.mark.parametrize("side", ["here", "there"])
def test_a_side_that_recorded_nothing_is_invalid(side):
    """No launch of one side has the case: INVALID with what failed there, never green."""
    found = launches()
    empty = replace(found, **{side: ()}, why_not="there: boom")
    verdict = judge_environment(CASE, (), measurement(), empty, other="x")
    assert (verdict.status, verdict.fails) == (Status.INVALID, True)
    assert verdict.worst.detail == "there: boom"


def test_facts_that_vary_between_launches_are_invalid():
    """A fact with two values in one environment cannot be compared with anything."""
    found = launches()
    torn = replace(found, there=(*found.there[:-1], baseline(facts={"temp_bytes": 1})))
    verdict = judge_environment(CASE, (), measurement(), torn, other="x")
    assert verdict.status is Status.INVALID
    assert "launches there differ among themselves (1, 20000)" in verdict.worst.detail


def test_claims_hold_in_every_environment():
    """A claim that is broken here is red, whatever the other side does."""
    stated = claim("temp_bytes <= 0.5 * argument_bytes")
    verdict = judge_environment(CASE, (stated,), measurement(), launches(), other="x")
    assert verdict.status is Status.REGRESSED
    assert verdict.worst.kind == "claim"


def test_virtual_devices_are_not_timed():
    """Several CPU devices share the cores: facts are judged, time is UNDECIDED with the reason, on any machine."""
    many = HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=8)
    verdict = judge_environment(CASE, (), measurement(hardware=many), launches(here=[2e6] * 5), other="x")
    assert (verdict.time.status, verdict.time.anywhere) == (Status.UNDECIDED, True)
    assert "share their cores" in verdict.time.reason


def test_other_arguments_are_listed():
    """An environment that makes other arguments (x64) says which."""
    before = baseline().signature
    other = (before[0], type(before[1])(path="batch", aval="float64[8,64]", nbytes=4096, donated=False))
    verdict = judge_environment(CASE, (), measurement(), launches(signature=other), other="x")
    assert "argument batch: float64[8,64] → float32[8,64]" in verdict.origin.differences


def test_products_of_wider_floats_are_red_between_environments_too():
    """The other jax multiplied bfloat16 where this one multiplies float32: as many FLOPs, and slower on every accelerator."""
    there = baseline(matmuls={"bfloat16[8,64] x bfloat16[64,64]": 3}, environment=OTHER)
    verdict = judge_environment(
        CASE, (), measurement(), Launches(here=(baseline(),), there=(there,), why_not=""), other="x"
    )
    assert verdict.status is Status.REGRESSED
    assert "wider_products" in {finding.name for finding in verdict.findings if finding.status is Status.REGRESSED}
