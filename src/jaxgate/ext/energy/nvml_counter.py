"""The energy of NVIDIA GPUs by their driver's counter (NVML, ``nvmlDeviceGetTotalEnergyConsumption``).

It counts millijoules of the whole board since the driver was loaded, on Volta and later. How often it moves differs between
devices and is not documented, so that it is measured (``run.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxgate.ext.energy.model import CounterError
from jaxgate.observe.machine.nvml import load_nvml, visible_gpus

if TYPE_CHECKING:
    import jax

NAME = "NVML"


class NvmlDriver:
    """The driver, opened once and held open until this process ends.

    Raises:
        CounterError: If it cannot be opened.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, load: Callable[[], Any] = load_nvml) -> None:
        try:
            self._nvml = load()
            self._nvml.nvmlInit()
            self._visible = visible_gpus(self._nvml, environ)
        except Exception as error:  # whatever it is, there is no counter
            raise CounterError(f"the GPU's driver cannot be asked: {error}") from error

    def counter(self, devices: Sequence[jax.Device]) -> NvmlCounter:
        """The counter of some devices, read once to see that it is there.

        Raises:
            CounterError: If a device is not among those that the driver shows, is another one there, is divided, or has
                no counter.
        """
        handles = [self._handle(device) for device in devices]
        counter = NvmlCounter(self._nvml, handles)
        counter.read_uj()
        return counter

    def _handle(self, device: jax.Device) -> Any:
        place = device.local_hardware_id
        if place is None or not 0 <= place < len(self._visible):
            raise CounterError(f"the driver shows {len(self._visible)} GPUs, and JAX uses number {place}")
        handle = self._visible[place]
        try:
            name = self._nvml.nvmlDeviceGetName(handle)
        except self._nvml.NVMLError as error:
            raise CounterError(f"the GPU's driver cannot be asked: {error}") from error
        name = name.decode() if isinstance(name, bytes) else str(name)
        if name != device.device_kind:
            raise CounterError(f"GPU {place} is {name} to the driver and {device.device_kind} to JAX")
        if self._divided(handle):
            raise CounterError(f"GPU {place} is divided (MIG), and its counter counts for all parts")
        return handle

    def _divided(self, handle: Any) -> bool:
        try:
            current, _ = self._nvml.nvmlDeviceGetMigMode(handle)
        except (self._nvml.NVMLError, AttributeError):  # a device that cannot be divided, or an older module
            return False
        return bool(current)


class NvmlCounter:
    """The counters of some GPUs."""

    name = NAME

    def __init__(self, nvml: Any, handles: Sequence[Any]) -> None:
        self._nvml, self._handles = nvml, tuple(handles)

    @property
    def ranges_uj(self) -> tuple[None, ...]:
        """None begins again: 64 bits of millijoules last longer than the device."""
        return (None,) * len(self._handles)

    def read_uj(self) -> tuple[int, ...]:
        """Microjoules of each device; the driver gives millijoules.

        Raises:
            CounterError: If one has no counter, or may not be read.
        """
        try:
            return tuple(int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(one)) * 1000 for one in self._handles)
        except (self._nvml.NVMLError, AttributeError) as error:
            raise CounterError(f"the GPU's energy cannot be read: {error}") from error

    def watch_others(self) -> Callable[[], str]:
        """Ask who computes on the devices, now and at the end.

        Raises:
            CounterError: If somebody else does, or the driver does not say.
        """
        if others := self._others():
            raise CounterError(others)
        return self._others

    def _others(self) -> str:
        for handle in self._handles:
            try:
                found = {process.pid for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
            except (self._nvml.NVMLError, AttributeError) as error:
                raise CounterError(f"who else uses the GPU cannot be read: {error}") from error
            if not found:
                raise CounterError("who else uses the GPU cannot be read: the driver does not even show this process")
            others = len(found) - 1  # in a container this process has another number to the driver
            if others:
                return f"{others} other {'process computes' if others == 1 else 'processes compute'} on the GPU"
        return ""
