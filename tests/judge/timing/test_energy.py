"""What counts of a run come to: the energy of a call by hand, and every reason for which there is none."""

from dataclasses import replace

import pytest
from support.factories import CASE, changed_verdict, measurement, record

from jaxgate.ext.energy.model import (
    Counted,
    Energy,
    EnergyHalf,
    EnergyRatio,
    EnergyRun,
    NoEnergy,
    compare_energy,
    energy_of,
)
from jaxgate.judge.verdict import judge
from jaxgate.model.decision import Status

S = 1_000_000_000


def half(watts, *, off_ns=0, calls=100, other_ns=0):
    """Half a second of calls at a power of each device."""
    counted = tuple(Counted(uj=round(w * 500_000), ns=S // 2, off_ns=off_ns) for w in watts)
    return EnergyHalf(counted=counted, run_ns=S // 2, other_ns=other_ns, calls=calls)


def run(*halves, idle=(20.0,), idle_off_ns=0):
    """A run after a second of nothing."""
    waited = tuple(Counted(uj=round(watts * 1e6), ns=S, off_ns=idle_off_ns) for watts in idle)
    return EnergyRun(counter="NVML", idle=waited, halves=halves)


STEADY = run(half([120.0]), half([120.0]))


def why(found):
    """Why it is not known, with the counter that was there."""
    assert found.counter == "NVML"
    return found.why


def test_the_energy_of_a_call_by_hand():
    assert energy_of(STEADY) == Energy(
        call_uj=500_000.0, resolution=0.0, idle_watts=20.0, calls=200, run_ns=S, devices=1, counter="NVML"
    )


def test_the_resolution_adds_up_what_may_be_wrong():
    """1 % of 120 W, and 5 % of 20 W, are 2.2 W of the 100 W that are left."""
    found = energy_of(run(*[half([120.0], off_ns=S // 200)] * 2, idle_off_ns=S // 20))
    assert found.resolution == pytest.approx(0.022)


def test_the_halves_of_a_run_tell_of_noise():
    """99 W and 101 W beyond idle: half of the difference is one per cent."""
    assert energy_of(run(half([119.0]), half([121.0]))).resolution == pytest.approx(0.01)


REFUSED = {
    "too coarse": (run(*[half([120.0], off_ns=S // 10)] * 2), "within 24%, at most 10% may be"),
    "not steady": (run(half([100.0]), half([160.0])), "the power not steady"),
    "idle above": (run(*[half([19.0])] * 2), "drew 20 W before the run, while nothing ran, and 19 W in it"),
    "idle equal": (run(*[half([20.0])] * 2), "drew 20 W before the run"),
    "still": (run(half([120.0]), half([0.0])), "a counter did not move while calls ran"),
    "one of two still": (run(*[half([120.0, 0.0])] * 2, idle=(20.0, 20.0)), "a counter did not move while calls ran"),
    "copies": (run(*[half([120.0], other_ns=S // 20)] * 2), "10% of the run were no calls"),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_counts_that_mean_nothing_give_no_number(refused):
    counts, reason = REFUSED[refused]
    found = energy_of(counts)
    assert isinstance(found, NoEnergy)
    assert reason in why(found)


def test_the_ratio_of_a_duel_and_what_it_is_known_to():
    """1 J against 0.5 J; each within 1 %, so that the ratio is within 1.01 / 0.99."""
    twice = run(half([219.0]), half([221.0]))
    found = compare_energy((replace(twice, idle=STEADY.idle), run(half([119.0]), half([121.0]))))
    assert found.ratio == pytest.approx(2.0)
    assert found.resolution == pytest.approx(1.005 / 0.99 - 1)
    assert found.differs


@pytest.mark.parametrize(
    ("watts", "differs"), [(120.0, False), (122.0, False), (118.0, False), (124.0, True), (116.0, True)]
)
def test_a_ratio_differs_only_beyond_its_resolution(watts, differs):
    """Either way; with 1 % of the power of each side the ratio is known to about 2.4 %."""
    now, before = (run(*[half([w], off_ns=S // 200)] * 2) for w in (watts, 120.0))
    assert compare_energy((now, before)).differs is differs


def test_a_duel_without_one_side_has_no_ratio():
    """Which side, and why; or that nothing was counted at all."""
    coarse = run(*[half([120.0], off_ns=S // 10)] * 2)
    assert why(compare_energy((coarse, STEADY))).startswith("today's program: the counter is too coarse")
    assert why(compare_energy((STEADY, coarse))).startswith("the baseline's program: the counter is too coarse")
    nothing = NoEnergy(why="the counter jumped", counter="NVML")
    assert compare_energy(nothing) is nothing
    assert compare_energy(None) is None
    assert energy_of(nothing) is nothing
    assert energy_of(None) is None


def test_energy_never_makes_a_case_red():
    """Ten times the energy in an unchanged program, and in a duel: status, findings and causes are as without it."""
    without = judge(CASE, [], measurement(), record(), strict=True)
    tenfold = run(half([1020.0]), half([1020.0]))
    verdict = judge(CASE, [], measurement(energy=tenfold), record(), strict=True, duel_energy=(tenfold, STEADY))
    assert isinstance(verdict.cost.duel_energy, EnergyRatio)
    assert verdict.cost.duel_energy.ratio == pytest.approx(10)
    assert verdict.cost.energy.call_uj == pytest.approx(5_000_000)
    assert (verdict.status, verdict.fails) == (Status.SAME, False)
    assert changed_verdict(verdict, energy=None, duel_energy=None) == without
