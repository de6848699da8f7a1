"""What one device of a target can do at most: products, memory, links to other devices.

Figures of public data sheets and papers, of dense products and of one direction of a link: sheets that print both
directions print twice as much. Rates of products stand in ``chips.py``, as attached devices need them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jaxgate.model.machines.gpus import GPUS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one device can do.

    Attributes:
        kind: As JAX names it, for its peak rates of products.
        memory: Bytes per second from and to its memory.
        links: Bytes per second that it sends to devices of its slice or machine, by all of its links together.
    """

    kind: str
    memory: float
    links: float


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
        # NVLink, both directions: 600 GB/s, 900 GB/s, 900 GB/s and 1.8 TB/s on the data sheets that ``gpus.py`` names
        "a100": Rates(kind=GPUS["a100"].kind, memory=GPUS["a100"].bandwidth, links=600e9 / 2),
        "h100": Rates(kind=GPUS["h100"].kind, memory=GPUS["h100"].bandwidth, links=900e9 / 2),
        "h200": Rates(kind=GPUS["h200"].kind, memory=GPUS["h200"].bandwidth, links=900e9 / 2),
        "b200": Rates(kind=GPUS["b200"].kind, memory=GPUS["b200"].bandwidth, links=1800e9 / 2),
    }
)
"""Chip of a target to what one of its devices can do."""
