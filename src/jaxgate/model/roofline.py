"""The roofline of a program that was never called: the least time that each resource of its chip would need (Williams et al., 2009).

An estimate for people; nothing is judged by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Resource = Literal["compute", "memory", "communication"]
"""What a step may be bound by: units for matrix products, the device's memory, links to other devices."""
RESOURCES: tuple[Resource, ...] = get_args(Resource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one call of a program asks of one device, counted in the optimised program; loops as often as they run."""

    # FLOPs of matrix products and convolutions, by type of the operands: `bfloat16`
    flops: Mapping[str, int] = field(default_factory=dict)
    memory_bytes: int = 0  # what is read from the device's memory and written to it
    sent_bytes: int = 0  # what the device sends to others at least, whatever the algorithm of a collective
    # FLOPs of matrix products by JAX's trace, divided among the devices: they include those of kernels and libraries
    traced_flops: int = 0
    traced_types: frozenset[str] = frozenset()  # types that these multiply
    # resources that more may be asked of than is counted, each with the reason
    unknown: Mapping[Resource, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """The least time that each resource would need for one call."""

    times_ns: Mapping[Resource, float]  # by resource; 0 where nothing is asked of it, as far as is known
    # resources that may need more than that, each with the reason
    unknown: Mapping[Resource, str] = field(default_factory=dict)

    @property
    def least_ns(self) -> float:
        """The least time of one call: that of the resource which needs most, as if all worked at once."""
        return max(self.times_ns.values(), default=0.0)

    @property
    def bound_by(self) -> Resource | None:
        """The resource that needs most; ``None`` where nothing is asked of any, or another may need more than is known."""
        most = max(RESOURCES, key=lambda name: self.times_ns.get(name, 0.0))
        others = self.unknown.keys() - {most}
        return None if others or not self.least_ns else most
