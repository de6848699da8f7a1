"""The state of NVIDIA GPUs, from the driver (NVML, through ``nvidia-ml-py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

MAX_UTILISATION = 5
"""Most per cent of the last sampling period."""

SLOWED_BY = {
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slow-down",
    "SwThermalSlowdown": "heat",
    "HwThermalSlowdown": "heat (hardware)",
    "HwPowerBrakeSlowdown": "power brake",
}
"""Clock event reasons that slow a device down. Idle and clocks set by the owner do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """One GPU; ``None`` is unknown, or was not asked."""

    name: str  # as the driver calls it
    processes: int | None  # compute processes on it that are not ours
    utilisation: int | None  # per cent of the last sampling period that it was at work
    slowed_by: tuple[str, ...] | None  # what slows its clocks down
    celsius: int | None  # its temperature
    slows_at_celsius: int | None  # where it begins to slow down
    processes_asked: bool = True
    utilisation_asked: bool = True

    @property
    def objections(self) -> tuple[str, ...]:
        """What speaks against timing on it; that nothing is known is one."""
        found = []
        if self.processes is None and self.utilisation is None and self.slowed_by is None:
            found.append("neither its users nor its clocks can be read")
        if self.processes:
            one = self.processes == 1
            found.append(f"{self.processes} other {'process computes' if one else 'processes compute'} on it")
        if self.utilisation is not None and self.utilisation > MAX_UTILISATION:
            found.append(f"{self.utilisation} % at work, at most {MAX_UTILISATION} % may be")
        if self.slowed_by:
            found.append(f"slowed down by {' and '.join(self.slowed_by)}")
        return tuple(found)

    def __str__(self) -> str:
        """What was seen, in a few words."""
        parts = [self.name]
        if self.processes_asked:
            parts.append(f"{known(self.processes)} other processes")
        if self.utilisation_asked:
            parts.append(f"{known(self.utilisation)} % at work")
        slowed = (
            "slow-downs unknown" if self.slowed_by is None else f"slowed by {' and '.join(self.slowed_by) or 'nothing'}"
        )
        heat = f"{known(self.celsius)} °C (slows at {known(self.slows_at_celsius)} °C)"
        return f"({'; '.join([*parts, slowed, heat])})"


def load_nvml() -> Any:
    """Import NVML's module, which only hosts with NVIDIA GPUs need.

    Raises:
        ImportError: If it is not installed; says how to.
    """
    try:
        return import_module("pynvml")
    except ImportError:
        raise ImportError("nvidia-ml-py is not installed (pip install nvidia-ml-py)") from None


def read_gpus(
    environ: Mapping[str, str], *, used_by_us: bool, after_work: bool, load: Callable[[], Any] = load_nvml
) -> tuple[GpuState, ...]:
    """Read the GPUs that programs of this environment may use.

    ``CUDA_VISIBLE_DEVICES`` names them; without it they are all of the machine's. ``used_by_us`` does not ask who uses
    them, ``after_work`` not how much.

    Raises:
        Exception: Of several kinds, if the driver cannot be asked, or shows no GPU.
    """
    nvml = load()
    nvml.nvmlInit()
    try:
        found = tuple(
            _state(nvml, handle, used_by_us=used_by_us, after_work=after_work) for handle in visible_gpus(nvml, environ)
        )
    finally:
        nvml.nvmlShutdown()
    if not found:
        raise RuntimeError("the driver shows no GPU")
    return found


def visible_gpus(nvml: Any, environ: Mapping[str, str]) -> list[Any]:
    """Handles of the visible devices, by index or unique name; CUDA's order is taken to be the driver's, as for equal devices."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    names = [name.strip() for name in visible.split(",") if name.strip()]
    return [
        nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else nvml.nvmlDeviceGetHandleByUUID(name)
        for name in names
    ]


def _state(nvml: Any, handle: Any, *, used_by_us: bool, after_work: bool) -> GpuState:
    def ask(query: str, *arguments: Any) -> Any:
        try:
            return getattr(nvml, query)(handle, *arguments)
        except (nvml.NVMLError, AttributeError):  # not on this device, or not in this driver
            return None

    reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:  # its name before driver 535
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    utilisation = None if after_work else ask("nvmlDeviceGetUtilizationRates")
    processes = None if used_by_us else ask("nvmlDeviceGetComputeRunningProcesses")
    name = ask("nvmlDeviceGetName")
    return GpuState(
        name="unknown" if name is None else str(name),
        processes=None if processes is None else len(processes),
        utilisation=None if utilisation is None else int(utilisation.gpu),
        slowed_by=None if reasons is None else _slowed_by(nvml, reasons),
        celsius=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        slows_at_celsius=ask("nvmlDeviceGetTemperatureThreshold", nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        processes_asked=not used_by_us,
        utilisation_asked=not after_work,
    )


def _slowed_by(nvml: Any, reasons: int) -> tuple[str, ...]:
    return tuple(word for name, word in SLOWED_BY.items() if reasons & getattr(nvml, f"nvmlClocksEventReason{name}"))


def known(value: float | None, form: str = "") -> str:
    """A number in a format; ``unknown`` where there is none."""
    return "unknown" if value is None else format(value, form)
