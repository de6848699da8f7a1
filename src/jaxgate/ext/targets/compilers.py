"""Each target's compiler: its packages, the variables of its process, the text that describes its chip, and kernels that it must not get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from jaxgate.ext.targets.model import CHIPS, GPUS, Gpu, Target
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.trace.lowering import Lowered


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCompilers:
    """The compiler of a platform that may not be there."""

    extra: str  # what installs it: `pip install 'jaxgate[...]'`
    packages: tuple[str, ...]  # distributions that decide what it compiles, as far as they are installed
    variables: Mapping[str, str]  # what it must find set before JAX is imported


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

    A host of TPUs has 2 x 2 chips for libtpu 0.0.42, which refuses fewer: one chip or two are told to be a host.
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


def refuse_interpreted(lowered: Lowered, target: Target) -> None:
    """Refuse a program with a Pallas kernel in interpret mode: it was chosen for the CPU that the program was traced on.

    Raises:
        InvalidCaseError: If it has one.
    """
    for equation in _equations(lowered.traced.jaxpr.jaxpr, target.lowering):
        if equation.primitive.name == "pallas_call" and equation.params.get("interpret"):
            raise InvalidCaseError(
                f"looking at the kernels of the {lowered.role}",
                f"expected kernels for {target}, found pallas_call(interpret=True): it was chosen for the CPU that the "
                f"function is traced on; choose by jax.lax.platform_dependent(..., cpu=, {target.lowering}=)",
            )


def _equations(jaxpr: Any, platform: str) -> Iterator[Any]:
    """All equations of a program that are lowered for a platform, inner ones included."""
    for equation in jaxpr.eqns:
        yield equation
        for value in _values(equation, platform):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _equations(inner, platform)


def _values(equation: Any, platform: str) -> Iterator[Any]:
    """The parameters of an equation, lists flattened; of ``jax.lax.platform_dependent`` the branch of the platform."""
    params = dict(equation.params)
    chosen = params.get("branches_platforms")
    if chosen is not None:
        fitting = (at for at, platforms in enumerate(chosen) if platforms is None or platform in platforms)
        branch = next(fitting, None)
        params["branches"] = () if branch is None else params["branches"][branch]
    for value in params.values():
        yield from value if isinstance(value, (list, tuple)) else (value,)
