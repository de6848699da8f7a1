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
    _gpus: NvmlDriver | str | None = field(default=None, init=False)  # or why it cannot be opened
    _found: dict[tuple[str, tuple[int | None, ...]], EnergyMeter | NoEnergy] = field(default_factory=dict, init=False)

    def of(self, devices: Sequence[jax.Device]) -> EnergyMeter | NoEnergy:
        """The meter of all devices that a case runs on, at least one; or why there is none."""
        platform = devices[0].platform
        if len({device.process_index for device in devices}) > 1:
            return NoEnergy(why="its devices belong to several processes")
        if platform == "cpu" and len(devices) > 1:
            return NoEnergy(why=SHARED_CORES.replace("no clock judges them", "no counter tells them apart"))
        places = () if platform == "cpu" else tuple(one.local_hardware_id for one in devices)
        key = platform, places
        if key not in self._found:
            try:
                self._found[key] = EnergyMeter(self._counter(platform, devices), self.clock, self.wait)
            except CounterError as error:
                self._found[key] = NoEnergy(why=str(error))
        return self._found[key]

    def _counter(self, platform: str, devices: Sequence[jax.Device]) -> Counter:
        """Why the driver of the GPUs cannot be opened is remembered, too: as text, for an error keeps its callers' arrays.

        Raises:
            CounterError: If there is none.
        """
        if platform == "cpu":
            return self.open_processors()
        if platform != "gpu":
            raise CounterError(f"no counter of energy is known for the platform {platform}")
        if self._gpus is None:
            try:
                self._gpus = self.open_gpus()
            except CounterError as error:
                self._gpus = str(error)
        if isinstance(self._gpus, str):
            raise CounterError(self._gpus)
        return self._gpus.counter(devices)
