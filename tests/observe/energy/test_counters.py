"""Which counter counts for a case: the processors', the GPUs' or none, looked for once."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.energy import World

from jaxgate.ext.energy.counters import EnergyMeters
from jaxgate.ext.energy.model import CounterError, NoEnergy


@dataclass(frozen=True)
class Device:
    """A device as JAX describes it."""

    platform: str = "gpu"
    local_hardware_id: int | None = 0
    device_kind: str = "NVIDIA H200"
    process_index: int = 0


class Driver:
    """Opens a counter of some GPUs; notes for which it was asked."""

    def __init__(self, refuses=""):
        self.asked, self.opened, self._refuses = [], 0, refuses

    def __call__(self):
        self.opened += 1
        if self._refuses:
            raise CounterError(self._refuses)
        return self

    def counter(self, devices):
        self.asked.append([device.local_hardware_id for device in devices])
        return World(idle=(20.0,) * len(devices))


def test_gpus_are_counted_by_their_driver_once_for_each_set():
    """All devices of a case, in one counter, which later cases on the same devices use."""
    driver = Driver()
    meters = EnergyMeters(open_gpus=driver)
    two = [Device(), Device(local_hardware_id=1)]
    assert meters.of(two) is meters.of(two)
    assert len(meters.of(two).counter.ranges_uj) == 2
    meters.of(two[:1])
    assert (driver.opened, driver.asked) == (1, [[0, 1], [0]])


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_a_counter_that_is_not_there_is_looked_for_once(platform):
    """And why it is not there is the answer each time."""
    nothing = Driver("no counter")
    meters = EnergyMeters(open_processors=nothing, open_gpus=nothing)
    for _ in range(3):
        assert meters.of([Device(platform=platform)]) == NoEnergy(why="no counter")
        assert meters.of([Device(platform=platform, local_hardware_id=1)]) == NoEnergy(why="no counter")
    assert nothing.opened == 1


def test_that_there_is_none_keeps_no_array_of_who_asked():
    meters = EnergyMeters(open_gpus=Driver("no driver"))

    def case():
        array = np.ones(3)
        meters.of([Device()])
        return weakref.ref(array)

    assert case()() is None


def test_nothing_is_opened_before_it_is_asked_for():
    """A run on processors does not wake a GPU's driver, nor the other way round."""
    nothing, world = Driver("asked"), World()
    meters = EnergyMeters(open_processors=lambda: world, open_gpus=nothing)
    assert meters.of([Device(platform="cpu")]).counter is world
    assert nothing.opened == 0


def test_devices_that_no_counter_tells_apart_have_none():
    """Virtual ones, those of several processes, and platforms that nobody counts for."""
    meters = EnergyMeters(open_processors=World, open_gpus=Driver())
    cpu = Device(platform="cpu")
    assert meters.of([cpu, replace(cpu, local_hardware_id=1)]).why.startswith("virtual CPU devices share their cores")
    assert meters.of([Device(), Device(process_index=1)]).why == "its devices belong to several processes"
    assert meters.of([Device(platform="tpu")]).why == "no counter of energy is known for the platform tpu"
