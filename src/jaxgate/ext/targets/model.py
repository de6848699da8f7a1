"""Targets: hardware that is not attached to this machine, for which programs can be compiled; of GPUs with figures of public data sheets.

What depends on the compute capability alone is from the table of technical specifications in NVIDIA's CUDA programming guide:
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from jaxgate.model.machine import HardwareKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A kind of GPU."""

    kind: str  # as JAX names the device
    capability: tuple[int, int]  # its compute capability
    multiprocessors: int  # streaming multiprocessors that programs have
    cores: int  # units for float32 in each of them
    clock_ghz: float  # the boost clock: the data sheet's float32 rate over two operations of each core
    l2_bytes: int  # level 2 cache
    memory_bytes: int  # device memory. What a device reports is a few per cent more or less.
    bandwidth: int  # of its memory, in bytes per second
    shared_bytes: int  # shared memory of a multiprocessor
    block_shared_bytes: int  # the most of it that one block may ask for


_KB, _MB = 2**10, 2**20
# SXM: https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet
# and https://resources.nvidia.com/en-us-hopper-architecture/nvidia-h100-tensor-c
_H100 = Gpu(
    kind="NVIDIA H100 80GB HBM3",
    capability=(9, 0),
    multiprocessors=132,
    cores=128,
    clock_ghz=1.98,
    l2_bytes=50 * _MB,
    memory_bytes=80_000_000_000,
    bandwidth=3_350_000_000_000,
    shared_bytes=228 * _KB,
    block_shared_bytes=227 * _KB,
)
GPUS: Mapping[str, Gpu] = MappingProxyType(
    {
        # SXM, 80 GB: https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf
        # and https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf
        "a100": Gpu(
            kind="NVIDIA A100-SXM4-80GB",
            capability=(8, 0),
            multiprocessors=108,
            cores=64,
            clock_ghz=1.41,
            l2_bytes=40 * _MB,
            memory_bytes=80_000_000_000,
            bandwidth=2_039_000_000_000,
            shared_bytes=164 * _KB,
            block_shared_bytes=163 * _KB,
        ),
        "h100": _H100,
        # SXM, the chip of an H100 with other memory: https://www.nvidia.com/en-us/data-center/h200/
        "h200": replace(_H100, kind="NVIDIA H200", memory_bytes=141_000_000_000, bandwidth=4_800_000_000_000),
        # One of the eight of a DGX B200: https://www.nvidia.com/en-us/data-center/dgx-b200/
        # and https://resources.nvidia.com/en-us-blackwell-architecture
        "b200": Gpu(
            kind="NVIDIA B200",
            capability=(10, 0),
            multiprocessors=148,
            cores=128,
            clock_ghz=1.98,
            l2_bytes=126 * _MB,
            memory_bytes=180_000_000_000,
            bandwidth=8_000_000_000_000,
            shared_bytes=228 * _KB,
            block_shared_bytes=227 * _KB,
        ),
    }
)
"""Name of a GPU in a target to what its compiler is told. Their PCIe cards and slices are other chips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A kind of chip, as its compiler knows it."""

    platform: str  # JAX's name of its platform
    compiler: str  # the compiler's name of it
    axes: tuple[int, ...]  # how many numbers may say how its chips are laid out
    memory_bytes: int  # what its compiler lets a program have of the memory of one device
    devices: int = 1  # devices that JAX sees of one chip
    options: tuple[tuple[str, str], ...] = ()  # further options of a topology


def _granted(gib: float) -> int:
    """Bytes of what a compiler prints in GiB, with two digits after the point."""
    return int(gib * 2**30)


CHIPS: Mapping[str, Chip] = MappingProxyType(
    {
        "v4": Chip(
            platform="tpu",
            compiler="v4",
            axes=(3,),
            memory_bytes=_granted(30.75),
            options=(("chip_config_name", "megacore"),),
        ),
        "v5e": Chip(platform="tpu", compiler="v5e", axes=(2,), memory_bytes=_granted(15.75)),
        "v5p": Chip(platform="tpu", compiler="v5p", axes=(3,), memory_bytes=_granted(95.73)),
        "v6e": Chip(platform="tpu", compiler="v6e", axes=(2,), memory_bytes=_granted(31.24)),
        "7x": Chip(platform="tpu", compiler="tpu7x", axes=(3,), memory_bytes=_granted(94.74), devices=2),
    }
    | {
        name: Chip(platform="gpu", compiler=name, axes=(1, 2), memory_bytes=gpu.memory_bytes)
        for name, gpu in GPUS.items()
    }
)
"""What can be compiled for. TPUs: seen with libtpu 0.0.42 and 0.0.50. A v4 is one device for its two cores, as its users have
it; without ``megacore`` its compiler gives two. GPUs: one number is the GPUs of one machine, two are machines and the GPUs of
each.

Memory of TPUs: how much the compiler calls available where it refuses a program of 384 GiB, seen 2026-11-24 with libtpu 0.0.42.1
and 0.0.50.1. The older one grants 0.01 GiB more to a v5p, a v6e and a 7x; what both grant stands here. That of GPUs is their data
sheet's: their compiler refuses nothing."""
_NAME = re.compile(r"(?P<platform>tpu|gpu):(?P<chip>\w+):(?P<topology>[1-9]\d*(?:x[1-9]\d*)*)")
_LAYOUTS = {1: "8", 2: "2x4", 3: "2x2x1"}
_EXAMPLES = ", ".join(f"{known.platform}:{chip}:{_LAYOUTS[known.axes[0]]}" for chip, known in CHIPS.items())
_LOWERING = MappingProxyType({"gpu": "cuda"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Hardware to compile for."""

    chip: str  # the kind of chip, one of `CHIPS`
    topology: str  # how many there are along each axis: `2x4`; of GPUs in one machine `8`, in two machines `2x8`

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read ``tpu:v5e:2x4``.

        Raises:
            ValueError: If it names no chip that can be compiled for; says what does.
        """
        found = _NAME.fullmatch(text.strip())
        chip = CHIPS.get(found["chip"]) if found else None
        if (
            found is None
            or chip is None
            or found["platform"] != chip.platform
            or found["topology"].count("x") + 1 not in chip.axes
        ):
            raise ValueError(f"expected a target such as {_EXAMPLES}, found {text!r}")
        return cls(chip=found["chip"], topology=found["topology"])

    def __str__(self) -> str:
        """As it is written: ``tpu:v5e:2x4``."""
        return f"{self.platform}:{self.chip}:{self.topology}"

    @property
    def platform(self) -> str:
        """JAX's name of the platform."""
        return CHIPS[self.chip].platform

    @property
    def lowering(self) -> str:
        """The platform that functions are lowered for."""
        return _LOWERING.get(self.platform, self.platform)

    @property
    def devices(self) -> int:
        """How many devices JAX would have there."""
        return math.prod(map(int, self.topology.split("x"))) * CHIPS[self.chip].devices

    @property
    def memory_bytes(self) -> int:
        """Memory of one device that a program may have."""
        return CHIPS[self.chip].memory_bytes

    @property
    def slug(self) -> str:
        """How names of its baselines' folders begin: ``tpu-v5e-2x4``."""
        return self.hardware(0).slug.rpartition("-")[0]

    def hardware(self, devices: int) -> HardwareKey:
        """The key of baselines on so many of the target's devices; no attached device has such a kind."""
        return HardwareKey(platform=self.platform, device_kind=f"{self.chip}:{self.topology}", devices=devices)
