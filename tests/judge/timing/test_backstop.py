"""The stored time withdraws SAME from what is far slower, and from nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.factories import CASE, measurement, record

from jaxgate.judge import judge
from jaxgate.judge.timing.backstop import FLOOR_NS, TIMES, beyond_stored
from jaxgate.model import Samples, Status, StoredBaseline

STORED_NS = 1_000_000


def samples(run_ns, contract="throughput"):
    """Twenty bursts of one call."""
    return Samples(bursts_ns=(round(run_ns),) * 20, calls_per_burst=1, contract=contract)


def stored(run_ns=STORED_NS, **changes):
    """A baseline of that time."""
    return record(samples=samples(run_ns), **changes)


def slow(times=20.0, run_ns=STORED_NS, **changes):
    """A measurement that many times slower."""
    return measurement(samples=samples(run_ns * times), **changes)


def judged(now, before):
    """The verdict of the case."""
    return judge(CASE, (), now, before, strict=True)


def test_an_identical_program_that_is_far_slower_is_red():
    """It says so, and by how much."""
    verdict = judged(slow(), stored())
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)
    assert (
        verdict.time.reason == "identical program, and yet 20.0 × slower than recorded: something outside the program"
    )
    assert verdict.time.decision.ratio == pytest.approx(20)


@pytest.mark.parametrize(("times", "red"), [(TIMES, False), (TIMES + 0.01, True), (1.0, False), (0.1, False)])
def test_the_factor(times, red):
    """Exactly three times is none."""
    assert judged(slow(times), stored()).fails is red


@pytest.mark.parametrize(("more_ns", "red"), [(FLOOR_NS, False), (FLOOR_NS + 1, True)])
def test_the_floor_of_a_short_call(more_ns, red):
    """A call of 10 µs may take 11 times as long before it counts."""
    now = measurement(samples=samples(10_000 + more_ns))
    assert judged(now, stored(10_000)).fails is red


def test_a_slower_machine_is_allowed_for():
    """Plain Python runs ten times slower there, too."""
    before = stored()
    phases = replace(before.baseline.phases, yardstick_ns=100)
    before = replace(before, baseline=replace(before.baseline, phases=phases))
    assert not judged(slow(phases=replace(phases, yardstick_ns=1_000)), before).fails
    assert judged(slow(phases=phases), before).fails


def test_one_fast_burst_speaks_for_the_machine():
    """What is slow by itself is slow in every burst."""
    bursts = (STORED_NS, *(STORED_NS * 20,) * 19)
    now = measurement(samples=Samples(bursts_ns=bursts, calls_per_burst=1))
    assert not judged(now, stored()).fails


ELSEWHERE = {
    "another environment": ({"environment": {"jax": "0.12.0"}}, {}),
    "other hardware": ({}, {"borrowed": True}),
    "several processes": ({"processes": 2}, {}),
    "no clock": ({"samples": None}, {}),
    "another contract": ({"samples": samples(STORED_NS * 20, "latency")}, {}),
}


@pytest.mark.parametrize(("now", "before"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_where_the_stored_time_says_nothing(now, before):
    """There it was another call, or another machine."""
    known = stored()
    changed = replace(slow(), **now)
    assert (
        beyond_stored(
            changed, StoredBaseline(baseline=known.baseline, path=known.path, **({"borrowed": False} | before))
        )
        is None
    )


def test_what_somebody_set_may_be_what_is_slow():
    """The machine and its libraries are the same, so that the stored time speaks."""
    now = slow()
    changed = replace(now, environment={**now.environment, "XLA_FLAGS": "--xla_slow"})
    verdict = judged(changed, stored())
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)
