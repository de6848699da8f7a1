"""Each target's compiler: its packages, the variables that its process needs, and the text that describes its chip to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jaxgate.model import CHIPS, GPUS, Gpu, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCompilers:
    """The compiler of a platform that may not be there.

    Attributes:
        extra: What installs it: ``pip install 'jaxgate[...]'``.
        packages: Distributions that decide what it compiles, as far as they are installed.
        variables: What it must find set before JAX is imported.
    """

    extra: str
    packages: tuple[str, ...]
    variables: Mapping[str, str]


COMPILERS: Mapping[str, TargetCompilers] = MappingProxyType(
    {
        # Without these libtpu looks for a TPU, writes logs, and lets one process in.
        "tpu": TargetCompilers(
            extra="tpu-aot",
            packages=("libtpu",),
            variables={
                "JAX_PLATFORMS": "cpu",
                "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
                "TPU_ACCELERATOR_TYPE": "v5litepod-8",
                "TPU_LOG_DIR": "disabled",
                "TPU_SKIP_MDS_QUERY": "1",
                "TPU_WORKER_HOSTNAMES": "localhost",
            },
        ),
        # No device is looked for, and CUDA's libraries, which are not asked for anything, may be absent.
        "gpu": TargetCompilers(
            extra="cuda-aot",
            packages=("jax-cuda13-plugin", "jax-cuda13-pjrt", "jax-cuda12-plugin", "jax-cuda12-pjrt"),
            variables={"JAX_PLATFORMS": "cpu", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "CUDA_VISIBLE_DEVICES": ""},
        ),
    }
)
"""JAX's name of a platform to its compiler."""
_HOST = 2
"""Chips of a host along each of the first two axes, where nothing else is said."""


def topology_of(target: Target) -> tuple[str, dict[str, Any]]:
    """The name and the options that a compiler's topology has.

    A host of TPUs has 2 x 2 chips for libtpu 0.0.42, which then refuses a single chip or two: they are told to be a host.
    """
    chip = CHIPS[target.chip]
    if target.chip in GPUS:
        machines, _, each = target.topology.rpartition("x")
        return chip.compiler, {
            "topology": f"1x{machines or 1}x{each}",
            "target_config": describe_gpu(GPUS[target.chip]),
        }
    options: dict[str, Any] = dict(chip.options)
    along = [int(count) for count in target.topology.split("x")][:2]
    if min(along) < _HOST:
        options["chips_per_host_bounds"] = [*(min(count, _HOST) for count in along), 1]
    return f"{chip.compiler}:{target.topology}", options


def describe_gpu(gpu: Gpu) -> str:
    """A GPU as the text of XLA's ``GpuTargetConfigProto``.

    cuDNN and the runtime are the oldest that JAX's CUDA 13 builds run with, whatever is installed: they decide which
    fusions may be chosen, and so belong to the target.
    """
    major, minor = gpu.capability
    return f"""
        gpu_device_info {{
          cuda_compute_capability {{ major: {major} minor: {minor} }}
          core_count: {gpu.multiprocessors}
          fpus_per_core: {gpu.cores}
          clock_rate_ghz: {gpu.clock_ghz}
          l2_cache_size: {gpu.l2_bytes}
          device_memory_size: {gpu.memory_bytes}
          memory_bandwidth: {gpu.bandwidth}
          shared_memory_per_core: {gpu.shared_bytes}
          shared_memory_per_block: {48 * 2**10}
          shared_memory_per_block_optin: {gpu.block_shared_bytes}
          registers_per_core_limit: {2**16}
          registers_per_block_limit: {2**16}
          threads_per_core_limit: 2048
          threads_per_block_limit: 1024
          threads_per_warp: 32
          block_dim_limit_x: {2**31 - 1}
          block_dim_limit_y: {2**16 - 1}
          block_dim_limit_z: {2**16 - 1}
        }}
        platform_name: "CUDA"
        dnn_version_info {{ major: 9 minor: 8 }}
        runtime_version {{ major: 13 }}
        device_description_str: "{gpu.kind}"
    """
