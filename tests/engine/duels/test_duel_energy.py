"""Energy of both sides of a duel: after it, in turn, and never instead of its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from support.energy import World
from support.factories import steady

from jaxgate.ext.energy.model import NoEnergy, compare_energy
from jaxgate.ext.energy.run import duel_energy

CALL_NS = 10_000_000
"""Of the baseline's program in the duel."""


@dataclass
class Side:
    """A side whose calls draw a power, or fail."""

    world: World
    watts: float
    ratio: float = 1.0
    consumed: bool = False
    error: Exception | None = None
    bursts: list[int] = field(default_factory=list)

    def burst(self, calls, _clock):
        """Some calls, which take what they take in the duel."""
        if self.error:
            raise self.error
        self.bursts.append(calls)
        self.world.pass_by(calls * CALL_NS * self.ratio, [self.watts])
        return round(calls * CALL_NS * self.ratio)


def counted(world, *sides, ratio=1.0):
    """What comes of counting, judged."""
    return compare_energy(duel_energy(world.meter, sides, steady(ratio)))


def test_each_side_makes_calls_of_20_ms_between_readings():
    """As many as its own calls fit; one where they eat their arguments."""
    world = World()
    sides = Side(world, 120.0, ratio=0.5), Side(world, 120.0), Side(world, 120.0, consumed=True)
    counted(world, *sides[:2], ratio=0.5)
    counted(world, sides[0], sides[2], ratio=0.5)
    assert [set(side.bursts) for side in sides] == [{4}, {2}, {1}]


def test_a_slower_side_with_the_same_power_takes_more_energy():
    """1.5 times as long at 100 W beyond idle: 1.5 J against 1 J."""
    world = World()
    found = counted(world, Side(world, 120.0, ratio=1.5), Side(world, 120.0), ratio=1.5)
    assert found.ratio == pytest.approx(1.5, rel=found.resolution)
    assert found.baseline.call_uj == pytest.approx(1_000_000, rel=found.resolution)


def test_without_a_counter_no_call_is_made():
    world = World()
    sides = Side(world, 120.0), Side(world, 120.0)
    assert duel_energy(None, sides, steady(1.0)) is None
    assert [side.bursts for side in sides] == [[], []]


def test_calls_that_fail_leave_the_outcome_of_the_duel():
    world = World()
    found = counted(world, Side(world, 120.0), Side(world, 120.0, error=RuntimeError("out of memory")))
    assert isinstance(found, NoEnergy)
    assert found.why.startswith("calls made for it failed: ")
    assert "out of memory" in found.why
