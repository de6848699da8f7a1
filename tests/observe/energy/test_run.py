"""Energy of a run under a fake counter and a fake clock: what was drawn is found, and what a counter cannot say is not said."""

from itertools import count

import pytest
from support.energy import World

from jaxgate.ext.energy.model import CounterError, Energy, NoEnergy, compare_energy, energy_of
from jaxgate.ext.energy.run import calls_of_burst, take_energy

CALL_MS = 2


def energy(world, watts, *, call_ms=CALL_MS, **burst):
    """The energy of one call of so many milliseconds at a power."""
    taken = take_energy(world.meter, [world.burst(call_ms, watts, **burst)], [call_ms * 1e6])
    return taken if isinstance(taken, NoEnergy) else energy_of(taken[0])


def duel(world, now, baseline, *, call_ms=CALL_MS):
    """The energies of two sides, by their power."""
    taken = take_energy(world.meter, [world.burst(call_ms, watts) for watts in (now, baseline)], [call_ms * 1e6] * 2)
    return compare_energy(taken if isinstance(taken, NoEnergy) else tuple(taken))


def why(found):
    """Why nothing is known, from a counter that was there."""
    assert isinstance(found, NoEnergy)
    assert found.counter == "FAKE"
    return found.why


@pytest.mark.parametrize("every_ms", [1, 20, 100])
def test_what_calls_draw_beyond_idle_is_found(every_ms):
    """2 ms at 120 W, of which 20 W are drawn anyway, are 200 mJ: within the resolution that is stated."""
    found = energy(World(every_ms=every_ms), [120.0])
    assert isinstance(found, Energy)
    assert found.idle_watts == pytest.approx(20, rel=0.03)
    assert abs(found.call_uj - 200_000) <= found.resolution * found.call_uj
    assert found.resolution < 0.1
    assert (found.devices, found.counter) == (1, "FAKE")


def test_a_run_is_as_long_as_the_counter_needs():
    """A counter that moves every millisecond takes a quarter of a second idle and a second of calls; a slow one no 4 s."""
    quick, slow = World(), World(every_ms=100)
    found = energy(quick, [120.0])
    assert found.run_ns == pytest.approx(1e9, rel=0.05)
    assert quick.now_ns == pytest.approx(1.25e9, rel=0.05)
    energy(slow, [120.0])
    assert slow.now_ns < 2e9


@pytest.mark.parametrize("every_ms", [1, 20, 100])
@pytest.mark.parametrize(("now", "ratio"), [(120.0, 1), (220.0, 2), (70.0, 0.5)])
def test_a_ratio_is_known_to_its_resolution(every_ms, now, ratio):
    """A program against itself does not differ; planted: twice and half the energy beyond idle, in the same time."""
    found = duel(World(every_ms=every_ms), [now], [120.0])
    assert found.ratio == pytest.approx(ratio, rel=found.resolution)
    assert found.differs is (ratio != 1)


def test_the_sides_of_a_duel_are_interleaved():
    """ABBA: a power that rises steadily is no difference between them."""
    world, drift = World(), count()

    def burst():
        world.pass_by(20e6, [100.0 + next(drift) / 10])
        return 10, 20_000_000

    now, baseline = take_energy(world.meter, [burst, burst], [2e6, 2e6])
    found = compare_energy((now, baseline))
    assert found.ratio == pytest.approx(1, abs=0.002)


def test_several_devices_are_added_up():
    """Each with its own counter and its own power, of which one does nothing."""
    found = energy(World(idle=(20.0, 30.0, 25.0)), [120.0, 80.0, 25.0])
    assert found.call_uj == pytest.approx(2 * (100 + 50) * 1000, rel=found.resolution)
    assert found.idle_watts == pytest.approx(75, rel=0.03)
    assert found.devices == 3


def test_a_counter_may_begin_again():
    """At its range, in the idle time and in the run, without harm."""
    range_uj = 10_000_000
    found = energy(World(ranges_uj=(range_uj,), begin_uj=range_uj - 1_000_000), [120.0])
    assert found.call_uj == pytest.approx(200_000, rel=found.resolution)


def spoiled(world, change, after):
    """Change what the counter shows from a reading on."""
    world.spoil = lambda values: tuple(map(change, values)) if world.reads > after else values
    return world


@pytest.mark.parametrize("after", [10, 60], ids=["idle", "in the run"])
def test_a_counter_that_goes_backwards_is_not_believed(after):
    """Neither one without a range, nor one that falls by less than half of it."""
    assert "went backwards" in why(energy(spoiled(World(begin_uj=10**9), lambda uj: uj - 10**8, after), [120.0]))
    ranged = World(ranges_uj=(10**12,), begin_uj=10**9)
    assert "went backwards" in why(energy(spoiled(ranged, lambda uj: uj - 10**8, after), [120.0]))


@pytest.mark.parametrize(
    ("after", "seen"),
    [
        (10, "the counter jumped: 1000 J in 5.01 ms, where 19.96 W are usual"),
        (60, "the counter jumped: 1002 J in 20 ms, where 119.9 W are usual"),
    ],
    ids=["idle", "in the run"],
)
def test_a_counter_that_jumps_is_not_believed(after, seen):
    """A thousand joules from one reading to the next, beside 0.1 J and 2.4 J."""
    assert why(energy(spoiled(World(), lambda uj: uj + 10**9, after), [120.0])) == seen


def test_a_jump_between_two_halves_is_not_believed():
    """Where a half is one call no step can be held against another: the halves differ."""
    jumps = spoiled(World(), lambda uj: uj + 40_000_000, 54)
    assert "not steady" in why(energy(jumps, [120.0], call_ms=600, calls=1))


def test_a_counter_that_does_not_move_says_nothing():
    """It stands still from the beginning, or as soon as calls run."""
    still = World()
    still.spoil = lambda values: (7,)
    assert why(energy(still, [120.0])) == "the counter did not move in 1.0 s while nothing ran"
    stops = World()
    seen = []
    stops.spoil = lambda values: (seen.append(values), seen[min(len(seen), 50) - 1])[1]
    assert why(energy(stops, [120.0])) == "a counter did not move while calls ran"


def test_a_counter_that_moves_too_seldom_is_too_coarse():
    """Every 400 ms: a run of two seconds holds too few of its steps. No call is made for it."""
    world, made = World(every_ms=400), []
    taken = take_energy(world.meter, [lambda: made.append(1)], [1e6])
    assert why(taken) == "the counter did move 2 times only in 1.0 s while nothing ran"
    assert made == []


class Crowded(World):
    """Somebody else is there, already or at the end."""

    def __init__(self, first="", end=""):
        super().__init__()
        self.others, self.others_at_end = first, end


def failing(world):
    """A driver that gives up in the run."""

    def fail(values):
        if world.reads > 60:
            raise CounterError("the GPU's energy cannot be read: Unknown Error")
        return values

    world.spoil = fail
    return world


UNKNOWN = {
    "one watt beyond 100, by steps of 100 ms": (World(idle=(100.0,), every_ms=100), 101.0, {}, "the counter is too coarse for the run"),
    "less than idle": (
        World(idle=(60.0,)), 50.0, {}, "the devices drew 59.9 W before the run, while nothing ran, and 50 W in it"
    ),
    "somebody else": (Crowded("2 other processes compute on the GPU"), 120.0, {}, "2 other processes compute on the GPU"),
    "somebody who came": (Crowded(end="other processes used 1.0 cores"), 120.0, {}, "other processes used 1.0 cores"),
    "an error of the counter": (failing(World()), 120.0, {}, "the GPU's energy cannot be read: Unknown Error"),
    "2 ms of copies for 20 ms of calls": (World(), 120.0, {"copies_ms": 2.0}, "9% of the run were no calls"),
    "too long a call": (World(), 120.0, {"call_ms": 3000}, "a call takes 3.0 s, at most 1 s may be"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_cannot_be_known_is_not_said(what):
    world, watts, call, reason = UNKNOWN[what]
    assert why(energy(world, [watts], **call)).startswith(reason)


def test_reading_slowly_is_no_copy():
    """A driver that takes 3 ms to answer makes a burst rarer, not dearer."""
    found = energy(World(read_ms=3), [120.0])
    assert found.call_uj == pytest.approx(200_000, rel=found.resolution)


@pytest.mark.parametrize(
    ("call_ns", "consumed", "calls"),
    [(2e6, False, 10), (3e6, False, 7), (1e9, False, 1), (1.0, False, 20_000), (2e6, True, 1)],
)
def test_a_burst_takes_20_ms(call_ns, consumed, calls):
    """At most 20,000 calls; one where it eats its arguments."""
    assert calls_of_burst(call_ns, consumed=consumed) == calls
