"""Counters of energy: what is asked of them, and which one counts for the devices of a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jaxgate.ext.energy.model import NoEnergy
from jaxgate.ext.energy.nvml_counter import NvmlDriver
from jaxgate.ext.energy.protocol import Counter, CounterError, Device
from jaxgate.ext.energy.rapl_counter import open_rapl
from jaxgate.model.measurement import SHARED_CORES


class GpuDriver(Protocol):
    """What can count the energy of GPUs."""

    def counter(self, devices: Sequence[Device]) -> Counter:
        """The counter of some of its devices.

        Raises:
            CounterError: If there is none; says why.
        """


@dataclass(frozen=True, slots=True)
class EnergyMeter:
    """A counter, and what its readings are timed with."""

    counter: Counter  # counts for the devices of one case
    clock: Callable[[], int] = time.perf_counter_ns  # monotonic nanoseconds
    wait: Callable[[float], None] = time.sleep  # lets seconds pass in which nothing runs


class EnergyMeters:
    """The counters of this machine. Each is looked for once, when the first case that it would count for is measured.

    Args:
        open_processors: Opens the counter of the processors.
        open_gpus: Opens the driver of the GPUs.
        clock: Monotonic nanoseconds.
        wait: Lets seconds pass.
    """

    def __init__(
        self,
        *,
        open_processors: Callable[[], Counter] = open_rapl,
        open_gpus: Callable[[], GpuDriver] = NvmlDriver,
        clock: Callable[[], int] = time.perf_counter_ns,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._open_processors, self._open_gpus = open_processors, open_gpus
        self._clock, self._wait = clock, wait
        self._gpus: GpuDriver | NoEnergy | None = None
        self._found: dict[tuple[str, tuple[int | None, ...]], EnergyMeter | NoEnergy] = {}

    def of(self, devices: Sequence[Device]) -> EnergyMeter | NoEnergy:
        """The meter of all devices that a case runs on, at least one; or why there is none."""
        platform = devices[0].platform
        if len({device.process_index for device in devices}) > 1:
            return NoEnergy(why="its devices belong to several processes")
        if platform == "cpu" and len(devices) > 1:
            return NoEnergy(why=SHARED_CORES.replace("no clock judges them", "no counter tells them apart"))
        places = [] if platform == "cpu" else [one.local_hardware_id for one in devices]
        key = (platform, tuple(places))
        if key not in self._found:
            self._found[key] = self._look(platform, devices)
        return self._found[key]

    def _look(self, platform: str, devices: Sequence[Device]) -> EnergyMeter | NoEnergy:
        try:
            if platform == "cpu":
                counter = self._open_processors()
            elif platform == "gpu":
                counter = self._driver().counter(devices)
            else:
                return NoEnergy(why=f"no counter of energy is known for the platform {platform}")
        except CounterError as error:
            return NoEnergy(why=str(error))
        return EnergyMeter(counter, self._clock, self._wait)

    def _driver(self) -> GpuDriver:
        """The driver of the GPUs; why it cannot be opened is remembered, too.

        Raises:
            CounterError: If it cannot be.
        """
        if self._gpus is None:
            try:
                self._gpus = self._open_gpus()
            except CounterError as error:
                self._gpus = NoEnergy(why=str(error))
        if isinstance(self._gpus, NoEnergy):
            raise CounterError(self._gpus.why)
        return self._gpus
