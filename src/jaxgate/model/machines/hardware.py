"""What a program runs on, or was compiled for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxgate.model.measured.numbers import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareKey:
    """What selects a baseline: the devices that the case uses, not those that the machine has.

    Attributes:
        platform: ``cpu``, ``gpu`` or ``tpu``.
        device_kind: As JAX names it; on CPU the processor's model. Of several processes with their number.
        devices: How many the case uses.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    platform: str
    device_kind: str
    devices: int

    @property
    def slug(self) -> str:
        """Name of the folder under ``baselines/``, for example ``cpu-amd-epyc-1``."""
        kind = re.sub(r"[^a-z0-9]+", "-", self.device_kind.lower()).strip("-")
        return f"{self.platform}-{kind}-{self.devices}"

    @property
    def target(self) -> str:
        """The target that a program was compiled for, ``tpu:v5e:2x4``; empty for devices that are there."""
        return f"{self.platform}:{self.device_kind}" if ":" in self.device_kind else ""

    @property
    def is_virtual(self) -> bool:
        """Whether the devices are several virtual ones of one CPU."""
        return self.platform == "cpu" and self.devices > 1

    def same_platform(self, other: HardwareKey) -> bool:
        """Whether programs compiled for the two are comparable: one platform, one number of devices."""
        return self.platform == other.platform and self.devices == other.devices


def compiled_for(target: str) -> str:
    """Why calls of a case cannot be measured."""
    return f"compiled for {target}, never called"
