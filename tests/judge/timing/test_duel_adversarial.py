"""A duel on a machine that lies: drift, modes, outliers, correlated noise, and clocks that cannot be right."""

import random
from dataclasses import replace
from math import exp

import pytest
from support.factories import CALL_NS, duel, steady

from jaxgate.judge.timing.duel import decide, decide_at_looks, is_settled, margin, noise
from jaxgate.model.decision import Status
from jaxgate.model.duel import Duel

ACCUSES = {Status.SLOWER, Status.FASTER}


def simulate(seed, machine, *, ratio=1.0, pairs=60, bursts=3):
    """Run a duel on a model of a machine: ABBA or BAAB, each burst slowed by ``machine(burst number, side)``."""
    draw = random.Random(seed)
    times = ([], [])
    number = 0
    for _ in range(pairs // 2):
        first = draw.randrange(2)
        for side in (first, 1 - first, 1 - first, first):
            half = []
            for _ in range(bursts):
                half.append(round(CALL_NS * (1.0 if side else ratio) * machine(number, side)))
                number += 1
            times[side].append(tuple(half))
    return Duel(now_ns=tuple(times[0]), baseline_ns=tuple(times[1]), calls_per_burst=1, seed=seed)


def outcomes(duels):
    """The statuses of many duels, at their looks."""
    return [decide_at_looks(told).status for told in duels]


# Machines


@pytest.mark.parametrize("total", [0.1, 0.5, -0.5])
def test_linear_drift_is_nobody_s_fault(total):
    """The machine gets slower by half, or faster, while the duel runs: the ratio stays at 1 and the verdict SAME."""
    steps = 4 * 30 * 3
    told = [simulate(seed, lambda number, side: exp(total * number / steps)) for seed in range(20)]
    assert outcomes(told) == [Status.SAME] * 20
    assert all(abs(decide(one).ratio - 1) < 3 * abs(total) / 120 for one in told)  # at most a few half-rounds' drift


@pytest.mark.parametrize("at", [1, 90, 180, 269])
def test_a_step_is_nobody_s_fault(at):
    """From one burst on everything takes 40 % longer: one pair may show it, the median does not."""
    told = [simulate(seed, lambda number, side: 1.4 if number >= at else 1.0) for seed in range(20)]
    assert ACCUSES.isdisjoint(outcomes(told))
    assert all(decide(one).ratio == pytest.approx(1) for one in told)


def test_two_modes_accuse_nobody_and_hide_nothing():
    """Each half-round is at 1 or at 1.3, a coin flip: half of the pairs tie, and +10 % puts 3 of 4 beyond the line."""
    draw = random.Random(5)

    def told(seed, ratio):
        modes = [draw.choice((1.0, 1.3)) for _ in range(120)]
        return simulate(seed, lambda number, side: modes[number // 3], ratio=ratio)

    assert ACCUSES.isdisjoint(outcomes([told(seed, 1.0) for seed in range(100)]))
    slow = outcomes([told(seed, 1.1) for seed in range(100)])  # 45 ± 3.4 of 60: 97 %
    assert slow.count(Status.SLOWER) >= 70  # in 1 of 10 the noise reaches the other mode and widens the margin
    assert not {Status.SAME, Status.FASTER} & set(slow)


def test_bursts_of_100_times_hide_in_minima():
    """3 bursts in 10 take 100 times as long: all three of a half-round in 2.7 %, so +10 % is seen and 0 % is SAME."""
    draw = random.Random(7)
    for ratio, expected in ((1.0, Status.SAME), (1.1, Status.SLOWER), (1 / 1.1, Status.FASTER)):
        told = [simulate(s, lambda n, side: 100.0 if draw.random() < 0.3 else 1.0, ratio=ratio) for s in range(50)]
        assert outcomes(told) == [expected] * 50


def test_outliers_of_one_burst_half_rounds_accuse_nobody():
    """The same with one burst each, where no minimum helps: a pair is off in 42 %, to either side."""
    draw = random.Random(8)
    told = [simulate(s, lambda n, side: 100.0 if draw.random() < 0.3 else 1.0, bursts=1) for s in range(100)]
    assert outcomes(told).count(Status.SLOWER) <= 1


@pytest.mark.parametrize("side", [0, 1])
def test_one_sided_contamination_does_not_accuse(side):
    """3 bursts in 10 of one side only take 100 times as long: 18 ± 3.5 pairs of 60 are off, 39 would be needed."""
    draw = random.Random(9)
    told = [
        simulate(s, lambda n, who: 100.0 if who == side and draw.random() < 0.3 else 1.0, bursts=1) for s in range(100)
    ]
    assert ACCUSES.isdisjoint(outcomes(told))


def test_correlated_noise_rarely_accuses():
    """AR(1) noise (0.9, 5 % altogether) makes neighbours alike: false SLOWER at most 2 of 200, +10 % seen in 190."""
    draw = random.Random(11)

    def told(seed, ratio):
        state = [draw.gauss(0, 0.05)]

        def machine(number, side):
            state[0] = 0.9 * state[0] + draw.gauss(0, 0.05 * (1 - 0.81) ** 0.5)
            return exp(state[0])

        return simulate(seed, machine, ratio=ratio, bursts=1)

    assert outcomes([told(seed, 1.0) for seed in range(200)]).count(Status.SLOWER) <= 2
    assert outcomes([told(seed, 1.1) for seed in range(200)]).count(Status.SLOWER) >= 190


@pytest.mark.parametrize(
    "tail",
    [
        lambda draw: 1 + 0.02 * draw.paretovariate(1.5),
        lambda draw: exp(draw.gauss(0, 0.03) * (10 if draw.random() < 0.1 else 1)),
        lambda draw: 1 + 0.05 * draw.expovariate(1),
    ],
    ids=["pareto", "mixture", "exponential"],
)
def test_false_alarms_of_identical_programs(tail):
    """500 A/A duels with heavy tails, at the three looks: at most 3 % SLOWER, and at most 3 % FASTER."""
    draw = random.Random(13)
    found = outcomes(simulate(seed, lambda number, side: tail(draw), bursts=1) for seed in range(500))
    assert found.count(Status.SLOWER) <= 15
    assert found.count(Status.FASTER) <= 15


# What cannot be judged


@pytest.mark.parametrize("broken", [0, -1, -CALL_NS])
@pytest.mark.parametrize("side", ["now_ns", "baseline_ns"])
def test_a_clock_that_stands_still_or_goes_back_is_refused(broken, side):
    """One burst of one side at zero or less: ValueError that shows the number, not a minimum that wins."""
    times = [(CALL_NS, CALL_NS, CALL_NS)] * 59 + [(CALL_NS, broken, CALL_NS)]
    told = replace(steady(1), **{side: tuple(times)})
    with pytest.raises(ValueError, match=rf"expected positive times, found .*{broken}.* ns: the clock cannot be"):
        decide(told)
    with pytest.raises(ValueError, match="expected positive times"):
        noise(told)


@pytest.mark.parametrize("pairs", [20, 60])
def test_traces_while_timing_are_refused(pairs):
    """A duel that traced or compiled says nothing, however clear its numbers."""
    told = steady(2, pairs, traces=2)
    with pytest.raises(ValueError, match="expected no trace or compile while timing, found 2"):
        decide(told)


def test_an_empty_duel_is_refused():
    with pytest.raises(ValueError, match="expected at least one pair, found none"):
        decide(duel([]))
    assert not is_settled(duel([]))


def test_sides_of_different_length_are_refused():
    """A half-round that is missing cannot be paired."""
    with pytest.raises(ValueError, match="zip"):
        decide(duel([CALL_NS] * 20, [CALL_NS] * 19))


@pytest.mark.parametrize("pairs", [1, 2, 6])
@pytest.mark.parametrize("ratio", [3, 1, 1 / 3])
def test_too_few_pairs_decide_nothing(pairs, ratio):
    """6 of 6 happen by chance in 1.6 %, one of one in 50 %, both more than 1.37 %: neither an accusation nor SAME."""
    try:
        found = decide(steady(ratio, pairs))
    except ValueError:
        return  # a refusal is as good
    assert found.status is Status.UNDECIDED
    assert "pairs" in found.reason
    assert decide(steady(2, 7)).status is Status.SLOWER  # 7 of 7: 1/128 = 0.8 %


def test_times_of_many_hours_and_of_one_tick():
    """The extremes of a clock in nanoseconds neither overflow nor divide by nothing."""
    told = duel([10**16] * 60, [1] * 60)
    found = decide(told)
    assert (found.status, found.margin) == (Status.SLOWER, 0.15)
    assert found.ratio == pytest.approx(1e16)
    assert margin(duel([1] * 60, [10**16] * 60)) == 0.03
    assert decide(duel([1] * 60, [10**16] * 60)).status is Status.FASTER
