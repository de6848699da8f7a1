"""The stored time withdraws SAME from what is far slower, and from nothing else."""

from dataclasses import replace

import pytest
from support.factories import CASE, measurement, record

from jaxgate.judge.difference import NO_SOURCE, Difference
from jaxgate.judge.time import FLOOR_NS, TIMES, against_stored
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.numbers import Samples

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
    verdict = judged(slow(), stored())
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)
    assert (
        verdict.time.reason == "identical program, and yet 20.0 × slower than recorded: something outside the program"
    )
    assert verdict.time.decision.ratio == pytest.approx(20)


@pytest.mark.parametrize(("times", "red"), [(TIMES, False), (TIMES + 0.01, True), (1.0, False), (0.1, False)])
def test_the_factor(times, red):
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


@pytest.mark.parametrize(("platform", "red"), [("cpu", False), ("gpu", True)])
def test_ranks_that_share_cores_wait_for_each_other_by_chance(platform, red):
    ranks = HardwareKey(platform=platform, device_kind="AMD EPYC, 2 processes", devices=2)
    before = stored()
    before = replace(before, baseline=replace(before.baseline, hardware=ranks))
    assert judged(slow(hardware=ranks), before).fails is red


ELSEWHERE = {
    "other hardware": ({}, {"borrowed": True}),
    "no clock": ({"samples": None}, {}),
    "another contract": ({"samples": samples(STORED_NS * 20, "latency")}, {}),
}


@pytest.mark.parametrize(("now", "before"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_where_the_stored_time_says_nothing(now, before):
    """There it was another call, or another machine."""
    known = stored(**before)
    assert against_stored(Difference(replace(slow(), **now), known.baseline), known) is None


PATCH = {"jax": "0.10.2", "jaxlib": "0.10.3", "python": "3.11"}
TARGET = HardwareKey(platform="tpu", device_kind="v5e:1x1", devices=1)


def alike(now, before):
    """The verdict of a program that compiles here to the baseline's executable."""
    return judge(CASE, (), now, before, strict=True, same_executable=True)


@pytest.mark.parametrize(
    "changed",
    [
        {"jaxlib": "0.10.3"},  # a patch of the code generator
        {"libtpu": "0.0.24"},  # a plug-in
        {"nvidia-cublas": "13.1"},  # a library that the executable calls
        {"backend": "cuda 12090"},  # the driver
        {"a name that nobody thought of": "1"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_the_same_executable_of_another_compiler_is_held_against_the_stored_time(changed):
    """The text of the optimised program is the same, what is generated from it may not be (jax#40101: 1,000 times slower).

    Where it is no slower the line says how much slower it would have had to be.
    """
    environment = {**measurement().environment, **changed}
    verdict = alike(slow(1000.0, environment=environment), stored())
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)
    blamed = "1000.0 × slower than recorded: the code of the compiler, or something outside the program"
    assert verdict.time.reason.endswith(blamed)
    verdict = alike(slow(1.2, environment=environment), stored())
    assert verdict.status is Status.SAME
    assert verdict.time.reason.startswith(
        "the same executable as the baseline's from another compiler (environment changed ["
    )
    assert verdict.time.reason.endswith("]); only 3 × the recorded time would have shown")


UNWITNESSED = {
    "the clock is switched off": ({"samples": None}, {}, False),
    "nothing was timed when it was recorded": ({}, {"samples": None}, True),
    "recorded on other hardware": ({}, {"borrowed": True}, True),
    "a target, which nobody can time": (
        {"samples": None, "hardware": TARGET, "compiled_only": True},
        {"hardware": TARGET},
        True,
    ),
}


@pytest.mark.parametrize(("now", "before", "anywhere"), UNWITNESSED.values(), ids=UNWITNESSED)
def test_another_compiler_that_no_clock_vouches_for_is_not_the_same(now, before, anywhere):
    """It is UNDECIDED with the command that times both; held against this run only where its clock is switched off."""
    known = record(**{"samples": samples(STORED_NS)} | before)
    verdict = alike(replace(slow(1.0, environment=PATCH), **now), known)
    assert verdict.status is Status.UNDECIDED
    assert verdict.time.reason.endswith("what the compiler makes of it: --perf-against NAME==VERSION times both")
    assert verdict.time.anywhere is anywhere


@pytest.mark.parametrize("changed", [{"jax": "0.10.3"}, {"numpy": "2.9"}, {"flax": "1"}, {"python": "3.12"}])
def test_what_generates_no_code_is_no_other_compiler(changed):
    """Equal executables are then equal code, with or without a clock."""
    verdict = alike(measurement(environment={**measurement().environment, **changed}, samples=None), stored())
    assert verdict.status is Status.SAME
    assert "compiler" not in verdict.time.reason


@pytest.mark.parametrize(
    "changed",
    [{"jaxlib": "0.10.3"}, {"jax": "0.10.3"}, {"python": "3.12"}, {"numpy": "2.9"}, {"XLA_FLAGS": "--xla_slow"}, {}],
    ids=str,
)
def test_the_factor_holds_whatever_changed_around(changed):
    """Not for the same executable alone: where no duel could be run, too, and for other input values of the same shapes."""
    now = slow(environment={**measurement().environment, **changed})
    other_values = replace(now, fingerprints=replace(now.fingerprints, inputs="i1"))
    for one in (now, other_values):
        verdict = judged(one, stored())
        assert (verdict.status, verdict.fails) == (Status.SLOWER, True)


def test_a_changed_program_that_no_duel_could_time_is_not_called_outside_of_itself():
    """What is far slower is red; that it is something outside the program is a guess that nothing supports."""
    verdict = judged(slow(fingerprints=replace(measurement().fingerprints, program="1" * 32)), stored())
    assert verdict.status is Status.SLOWER
    assert (
        verdict.time.reason == f"program changed [{NO_SOURCE}] and no duel was run, and yet 20.0 × slower than recorded"
    )


@pytest.mark.parametrize(
    ("every", "wait_ns", "of_old", "red"),
    [
        (3, 500_000_000, 0, True),
        (10, 500_000_000, 0, True),
        (3, 50_000_000, 0, False),  # 17 ms a call: as long as a core may be somebody else's
        (3, 500_000_000, 500_000_000, False),  # they waited when it was recorded, too
        (50, 500_000_000, 0, False),  # none of twenty
    ],
)
def test_calls_of_which_some_wait_are_slower_on_average(every, wait_ns, of_old, red):
    def waiting(wait):
        bursts = tuple(STORED_NS + (wait if number % every == every - 1 else 0) for number in range(20))
        return Samples(bursts_ns=bursts, calls_per_burst=1)

    verdict = judged(measurement(samples=waiting(wait_ns)), record(samples=waiting(of_old)))
    assert verdict.fails is red
    if red:
        assert "slower than recorded on average, as some calls wait" in verdict.time.reason
