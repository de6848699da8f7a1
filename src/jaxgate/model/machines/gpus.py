"""GPUs as a compiler must know them to compile for one that is not there: figures of public data sheets.

What depends on the compute capability alone is from the table of technical specifications in NVIDIA's CUDA programming guide:
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A kind of GPU.

    Attributes:
        kind: As JAX names the device.
        capability: Its compute capability.
        multiprocessors: Streaming multiprocessors that programs have.
        cores: Units for float32 in each of them.
        clock_ghz: The boost clock: the data sheet's float32 rate over two operations of each core.
        l2_bytes: Level 2 cache.
        memory_bytes: Device memory. What a device reports is a few per cent more or less.
        bandwidth: Of its memory, in bytes per second.
        shared_bytes: Shared memory of a multiprocessor.
        block_shared_bytes: The most of it that one block may ask for.
    """

    kind: str
    capability: tuple[int, int]
    multiprocessors: int
    cores: int
    clock_ghz: float
    l2_bytes: int
    memory_bytes: int
    bandwidth: int
    shared_bytes: int
    block_shared_bytes: int


_KB, _MB = 2**10, 2**20

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
        # SXM: https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet
        # and https://resources.nvidia.com/en-us-hopper-architecture/nvidia-h100-tensor-c
        "h100": Gpu(
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
        ),
        # SXM, the chip of an H100 with other memory: https://www.nvidia.com/en-us/data-center/h200/
        "h200": Gpu(
            kind="NVIDIA H200",
            capability=(9, 0),
            multiprocessors=132,
            cores=128,
            clock_ghz=1.98,
            l2_bytes=50 * _MB,
            memory_bytes=141_000_000_000,
            bandwidth=4_800_000_000_000,
            shared_bytes=228 * _KB,
            block_shared_bytes=227 * _KB,
        ),
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
