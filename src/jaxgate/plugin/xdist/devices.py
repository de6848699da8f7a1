"""One accelerator for each worker of pytest-xdist: counted without JAX, and chosen before JAX starts.

A TPU belongs to one process, and JAX takes most of a GPU's memory when it first touches it: two workers on one device
would fail each other, or disturb each other's times.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

PIN = "JAXGATE_PIN_WORKERS"
"""Set to 0 to leave accelerators to the workers themselves."""
_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of accelerator."""

    platforms: frozenset[str]  # what `JAX_PLATFORMS` may call it
    plugin: str  # matches the name of the package without which JAX does not use it
    # environment variables that choose devices; the first one that is set says which may be used
    variables: tuple[str, ...]
    count: Callable[[], Sequence[str]]  # names the devices of this machine
    constants: Mapping[str, str] = field(default_factory=dict)  # what a process with one device must have set besides


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDevices:
    """A worker's part of the accelerators: variables that choose its own, or why it has none."""

    variables: dict[str, str] = field(default_factory=dict)
    why_none: str = ""


def _nvidia() -> list[str]:
    try:
        command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.split()


def _amd(nodes: Path = Path("/sys/class/kfd/kfd/topology/nodes")) -> list[str]:
    """The GPUs of AMD: nodes with compute units; the processors are nodes, too."""
    found = 0
    for properties in sorted(nodes.glob("*/properties")):
        try:
            found += re.search(r"^simd_count [1-9]", properties.read_text(), re.MULTILINE) is not None
        except OSError:
            continue
    return [str(number) for number in range(found)]


def _tpu(devices: Path = Path("/dev")) -> list[str]:
    chips = list(devices.glob("accel[0-9]*")) or list((devices / "vfio").glob("[0-9]*"))
    return [str(number) for number in range(len(chips))]


KINDS = (
    Kind(
        platforms=frozenset({"cuda", "gpu"}),
        plugin=r"jax-cuda\d+-plugin",
        variables=("CUDA_VISIBLE_DEVICES",),
        count=_nvidia,
    ),
    Kind(
        platforms=frozenset({"rocm", "gpu"}),
        plugin=r"jax-rocm\d*-plugin",
        variables=("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
        count=_amd,
    ),
    Kind(
        platforms=frozenset({"tpu"}),
        plugin="libtpu",
        variables=("TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"),
        count=_tpu,
        constants={"TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_PROCESS_BOUNDS": "1,1,1"},
    ),
)


def found(
    environ: Mapping[str, str] = os.environ,
    *,
    installed: Callable[[], Sequence[str]] | None = None,
    kinds: Sequence[Kind] = KINDS,
) -> list[dict[str, str]]:
    """The accelerators that JAX would use here, each as the variables that leave it alone visible.

    ``environ`` may leave only some devices, or none. ``installed`` names packages; Python is asked by default.
    """
    wanted = environ.get("JAX_PLATFORMS", "").lower()
    if environ.get(PIN) == "0":
        return []
    names: Sequence[str] = ()
    for kind in kinds:
        if wanted and not kind.platforms & set(wanted.split(",")):
            continue
        names = names or (_installed() if installed is None else installed())
        if not any(re.fullmatch(kind.plugin, name.lower().replace("_", "-")) for name in names):
            continue
        chosen = next((environ[name] for name in kind.variables if environ.get(name, "").strip()), None)
        devices = [item.strip() for item in chosen.split(",") if item.strip()] if chosen else list(kind.count())
        if devices:
            return [{kind.variables[0]: device, **kind.constants} for device in devices]
    return []


def _installed() -> list[str]:
    return [name for each in distributions() if (name := each.metadata["Name"])]


def share_of(place: int, accelerators: Sequence[dict[str, str]]) -> WorkerDevices:
    """The part of one worker."""
    if not accelerators:
        return WorkerDevices()
    if place < len(accelerators):
        return WorkerDevices(variables=dict(accelerators[place]))
    count = len(accelerators)
    return WorkerDevices(
        why_none=f"expected a worker for each accelerator, found more than {count}; run with -n {count}"
    )


def pin(variables: Mapping[str, str]) -> None:
    """Leave this process one accelerator; before JAX looks for any."""
    os.environ.update(variables)
