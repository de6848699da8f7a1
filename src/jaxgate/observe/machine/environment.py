"""Hardware and environment: what a number depends on besides the code."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import jax

from jaxgate.model.machine import CORES, CORES_GIVEN_UP, HardwareKey
from jaxgate.observe.machine.jax_settings import SETTINGS, unusual_settings
from jaxgate.observe.machine.process import CORES_AT_START, allowed_cores, usable_cores
from jaxgate.observe.source_lines import is_own_file, package_of, without_folders

_PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "libtpu", "jax-cuda12-plugin", "jax-cuda13-plugin")
_NVIDIA = ("cublas", "cuda-nvcc", "cudnn", "cufft", "cusolver", "cusparse", "nccl", "nvshmem")
_LIBRARIES = tuple(f"nvidia-{name}{cuda}" for name in _NVIDIA for cuda in ("", "-cu12", "-cu13"))
"""Wheels whose code a program on a GPU runs."""
_FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
_RUNTIME = re.compile(
    r"(?:NCCL|CUBLAS|CUDNN|MIOPEN|RCCL|OMP|MKL)_\w+|NVIDIA_TF32_OVERRIDE|XLA_PYTHON_CLIENT_(?:ALLOCATOR|PREALLOCATE)"
    r"|CUDA_(?:DEVICE_MAX_CONNECTIONS|LAUNCH_BLOCKING|MODULE_LOADING|FORCE_PTX_JIT|DISABLE_PTX_JIT)"
)
"""Variables that libraries and runtimes read: they change how a program runs, and leave no trace in it."""
_SAYS_WHERE = re.compile(r"NCCL_DEBUG\w*|\w*_(?:PATH|DIR|FILE|HOME|VERSION|LOG\w*)")
"""Variables among these that name places, versions and logs."""

_LOOKED_AT = 100
"""Equations whose frames are looked through: spread over all of them, some milliseconds."""


@cache
def cpu_model() -> str:
    """The processor's model; "unknown" where the system does not report it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model", "CPU part") and value.strip():
                return value.strip()
    if platform.system() == "Darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip():
            return answer.stdout.strip()
    return platform.processor() or platform.machine() or "unknown"


def hardware_key(device: jax.Device, devices: int, processes: int = 1) -> HardwareKey:
    """Name the hardware of a case.

    ``devices`` is how many the case uses, ``processes`` how many these belong to: two of four devices are not one of
    eight.
    """
    kind = cpu_model() if device.platform == "cpu" else device.device_kind
    spread = f", {processes} processes" if processes > 1 else ""
    return HardwareKey(platform=device.platform, device_kind=f"{kind}{spread}", devices=devices)


def first_device() -> HardwareKey:
    """Name the device that JAX would use first. Takes the devices of this process."""
    return hardware_key(jax.devices()[0], 1)


@cache
def _versions() -> Mapping[str, str]:
    found = {}
    for package in (*_PACKAGES, *_LIBRARIES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def libraries_of(equations: Sequence[Any]) -> dict[str, str]:
    """Versions of the packages whose functions made some of these equations, but for those that the environment names.

    A newer one changes programs, and no source of the project.
    """
    found: set[str] = set()
    for equation in equations[:: len(equations) // _LOOKED_AT + 1]:
        for frame in getattr(equation.source_info.traceback, "frames", ()):  # the innermost first
            if is_own_file(frame.file_name):
                break  # whoever asked for the measurement stands above
            found.add(package_of(frame.file_name))
    return {name: known for name in sorted(found) if name and name not in _versions() and (known := _version(name))}


@cache
def _version(package: str) -> str:
    """Of the distribution that a package came with; empty if it came with none."""
    try:
        return version(package)
    except PackageNotFoundError:
        names = _distributions().get(package, ())
        return version(names[0]) if names else ""


_distributions = cache(packages_distributions)


def read_environment(device: jax.Device, other: Mapping[str, str] | None = None) -> dict[str, str]:
    """Collect what may change a program or its speed: versions, flags, JAX settings, driver and runtime, system.

    ``other`` are versions of a compiler in another process, in place of the device's own: it is only compiled.
    """
    found = {name: known for name, known in _versions().items() if name != "libtpu" or device.platform == "tpu"}
    found["python"] = ".".join(platform.python_version_tuple()[:2])
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["backend"] = " ".join(str(device.client.platform_version).split())
    found |= other or {}
    for name, value in os.environ.items():
        if is_setting(name) and (value.strip() or name not in _FLAGS):
            found[name] = shown(value)
    if other is None and device.platform == "cpu":
        if (cores := usable_cores()) < (os.cpu_count() or cores):
            found[CORES] = f"{cores} of {os.cpu_count()}"
        if (allowed := allowed_cores()) < CORES_AT_START:
            found[CORES_GIVEN_UP] = f"{CORES_AT_START - allowed} of {CORES_AT_START}"
    found |= unusual_settings()
    for name in SETTINGS:
        found[name] = str(getattr(jax.config, name))
    return dict(sorted(found.items()))


def environment_here() -> dict[str, str]:
    """The environment of the device that JAX would use first. Takes the devices of this process."""
    return read_environment(jax.devices()[0])


def settings_here() -> dict[str, str]:
    """What somebody set: variables that compilers and runtimes read, and JAX's settings that are not its defaults."""
    variables = {name: shown(value) for name, value in os.environ.items() if is_setting(name) and value.strip()}
    return dict(sorted((variables | unusual_settings()).items()))


def is_setting(variable: str) -> bool:
    """Whether the compiler or a runtime reads a variable, so that it stands in the environment."""
    return variable in _FLAGS or bool(_RUNTIME.fullmatch(variable) and not _SAYS_WHERE.fullmatch(variable))


def shown(value: str) -> str:
    """The value of a variable as it stands in the environment: on one line, a hash for each path."""
    return without_folders(" ".join(value.split()))


def fingerprint(*parts: object) -> str:
    """A short hash of anything with a stable text."""
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=16).hexdigest()
