"""Counters of energy: what is asked of them, and which one counts for the devices of a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxgate.ext.energy.model import CounterError, NoEnergy
from jaxgate.ext.energy.nvml_counter import NvmlCounter, NvmlDriver
from jaxgate.ext.energy.rapl_counter import RaplCounter, open_rapl
from jaxgate.model.measurement import SHARED_CORES

if TYPE_CHECKING:
    import jax


Counter = NvmlCounter | RaplCounter


@dataclass(frozen=True, slots=True)
class EnergyMeter:
    """A counter, and what its readings are timed with."""

    counter: Counter  # counts for the devices of one case
    clock: Callable[[], int] = time.perf_counter_ns  # monotonic nanoseconds
    wait: Callable[[float], None] = time.sleep  # lets seconds pass in which nothing runs


@dataclass(kw_only=True)
class EnergyMeters:
    """The counters of this machine. Each is looked for once, when the first case that it would count for is measured."""

    open_processors: Callable[[], Counter] = open_rapl  # opens the counter of the processors
    open_gpus: Callable[[], NvmlDriver] = NvmlDriver  # opens the driver of the GPUs
    clock: Callable[[], int] = time.perf_counter_ns  # monotonic nanoseconds
    wait: Callable[[float], None] = time.sleep  # lets seconds pass
    _gpus: NvmlDriver | NoEnergy | None = field(default=None, init=False)
    _found: dict[tuple[str, tuple[int | None, ...]], EnergyMeter | NoEnergy] = field(default_factory=dict, init=False)

    def of(self, devices: Sequence[jax.Device]) -> EnergyMeter | NoEnergy:
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

    def _look(self, platform: str, devices: Sequence[jax.Device]) -> EnergyMeter | NoEnergy:
        try:
            if platform == "cpu":
                counter: Counter = self.open_processors()
            elif platform == "gpu":
                counter = self._driver().counter(devices)
            else:
                return NoEnergy(why=f"no counter of energy is known for the platform {platform}")
        except CounterError as error:
            return NoEnergy(why=str(error))
        return EnergyMeter(counter, self.clock, self.wait)

    def _driver(self) -> NvmlDriver:
        """The driver of the GPUs; why it cannot be opened is remembered, too.

        Raises:
            CounterError: If it cannot be opened.
        """
        if self._gpus is None:
            try:
                self._gpus = self.open_gpus()
            except CounterError as error:
                self._gpus = NoEnergy(why=str(error))
        if isinstance(self._gpus, NoEnergy):
            raise CounterError(self._gpus.why)
        return self._gpus
