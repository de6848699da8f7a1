"""What one device of a chip can do at most, and which share of that a program's products reach.

Figures are those of public data sheets and papers, of dense products and of one direction of a link: sheets that print
"with sparsity" or both directions print twice as much. A kind that is not here, a slice of a chip among them, has no
peak, and nothing is said of it. Chips to compile for stand in ``ext/targets/model.py``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jaxgate.ext.targets.model import GPUS
from jaxgate.model.measurement import Measurement

_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


def _gpu(half: float, tensor_float: float, double: float) -> dict[str, float]:
    """FLOP/s of tensor cores, for the widths that all GPUs here have."""
    return {"bfloat16": half, "float16": half, "float32": tensor_float, "float64": double}


def _eight_bits(rate: float) -> dict[str, float]:
    return dict.fromkeys((*_FLOAT8, "int8"), rate)


PEAK_FLOPS = MappingProxyType(
    {
        # A100: https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf
        r"NVIDIA A100.*": {**_gpu(312e12, 156e12, 19.5e12), "int8": 624e12},
        # H100, both forms: https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet
        r"NVIDIA H100 PCIe": {"bfloat16": 756e12, "float16": 756e12, "float32": 378e12},
        r"NVIDIA H100 80GB HBM3": {**_gpu(989.4e12, 494.7e12, 67e12), **_eight_bits(1979e12)},
        # H200 (SXM; the PCIe card is another kind): https://www.nvidia.com/en-us/data-center/h200/
        r"NVIDIA H200": {**_gpu(989.4e12, 494.7e12, 67e12), **_eight_bits(1979e12)},
        # B200, one of the eight of a DGX, half of what is printed with sparsity: https://www.nvidia.com/en-us/data-center/dgx-b200/
        # and https://resources.nvidia.com/en-us-blackwell-architecture
        r"NVIDIA B200": {"bfloat16": 2250e12, "float16": 2250e12, "float32": 1125e12, **_eight_bits(4500e12)},
        # L4: https://www.nvidia.com/en-us/data-center/l4/
        r"NVIDIA L4": {"bfloat16": 121e12, "float16": 121e12, "float32": 60e12},
        # TPU, by chip, and from v4 on a device is a chip: https://docs.cloud.google.com/tpu/docs/system-architecture-tpu-vm
        r"TPU v4": {"bfloat16": 275e12, "float32": 275e12, "int8": 275e12},
        r"TPU v5 lite|TPU v5e": {"bfloat16": 197e12, "float32": 197e12, "int8": 393e12},
        r"TPU v5|TPU v5p": {"bfloat16": 459e12, "float32": 459e12, "int8": 918e12},
        r"TPU v6 lite|TPU v6e": {"bfloat16": 918e12, "float32": 918e12, "int8": 1836e12},
        # A device is half a chip: https://docs.cloud.google.com/tpu/docs/tpu7x
        r"TPU7x": {"bfloat16": 2307e12 / 2, "float32": 2307e12 / 2, **dict.fromkeys(_FLOAT8, 4614e12 / 2)},
    }
)
"""Device kind as JAX names it (a regular expression for all of it) to FLOP/s of one device, by type of the operands.

float32 as JAX multiplies it by default (``jax.lax.Precision.DEFAULT``): in TensorFloat-32 on these GPUs, in
bfloat16 on TPUs.
"""

_SLICE = " MIG "
_USUAL = frozenset({"", "None", "default", "fastest"})


def peak_flops(kind: str, types: Collection[str]) -> float | None:
    """The most that one device can do with the fastest of these types; ``None`` where it is not known."""
    known = next((row for name, row in PEAK_FLOPS.items() if re.fullmatch(name, kind) and _SLICE not in kind), {})
    return max((rate for name, rate in known.items() if name in types), default=None)


def utilisation(measurement: Measurement) -> float | None:
    """Model FLOPs utilisation (Chowdhery et al., "PaLM", 2022): the analytic FLOPs of a call over what the chips could do.

    The fastest type that a program multiplies counts, so that the share is never flattered.
    """
    samples, flops = measurement.samples, measurement.analytic_flops
    if samples is None or not flops or samples.run_ns <= 0:
        return None
    types = {name for label in measurement.matmuls for name in re.findall(r"(\w+)\[", label)}
    if measurement.environment.get("jax_default_matmul_precision", "") not in _USUAL:
        types.discard("float32")  # how fast it is then is another question
    peak = peak_flops(measurement.hardware.device_kind, types)
    return None if peak is None else flops * 1e9 / samples.run_ns / (peak * measurement.hardware.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one device can do."""

    kind: str  # as JAX names it, for its peak rates of products
    memory: float  # bytes per second from and to its memory
    links: float  # bytes per second that it sends to devices of its slice or machine, by all of its links together


RATES: Mapping[str, Rates] = MappingProxyType(
    {
        # https://docs.cloud.google.com/tpu/docs/v4; six links of 50 GB/s: Jouppi et al., "TPU v4", 2023,
        # https://arxiv.org/abs/2304.01433
        "v4": Rates(kind="TPU v4", memory=1200e9, links=6 * 50e9),
        # https://docs.cloud.google.com/tpu/docs/v5e: 400 GB/s in both directions
        "v5e": Rates(kind="TPU v5 lite", memory=819e9, links=400e9 / 2),
        # v5p, v6e and 7x: https://docs.cloud.google.com/tpu/docs/tpu7x, side by side
        "v5p": Rates(kind="TPU v5", memory=2765e9, links=1200e9 / 2),
        "v6e": Rates(kind="TPU v6 lite", memory=1638e9, links=800e9 / 2),
        # A device is half a chip, with half of its memory and links.
        "7x": Rates(kind="TPU7x", memory=7380e9 / 2, links=1200e9 / 2 / 2),
        # NVLink, both directions: 600 GB/s, 900 GB/s, 900 GB/s and 1.8 TB/s on the data sheets above
        "a100": Rates(kind=GPUS["a100"].kind, memory=GPUS["a100"].bandwidth, links=600e9 / 2),
        "h100": Rates(kind=GPUS["h100"].kind, memory=GPUS["h100"].bandwidth, links=900e9 / 2),
        "h200": Rates(kind=GPUS["h200"].kind, memory=GPUS["h200"].bandwidth, links=900e9 / 2),
        "b200": Rates(kind=GPUS["b200"].kind, memory=GPUS["b200"].bandwidth, links=1800e9 / 2),
    }
)
"""Chip of a target to what one of its devices can do."""
