"""What a program runs on, or was compiled for: hardware, JAX's settings, and the release line of jax.

A baseline is kept for each release line, as two of them rarely write the same program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jaxgate.model.numbers import Strict


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareKey(Strict):
    """What selects a baseline: the devices that the case uses, not those that the machine has."""

    platform: str  # `cpu`, `gpu` or `tpu`
    device_kind: str  # as JAX names it; on CPU the processor's model. Of several processes with their number.
    devices: int  # how many the case uses

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
    def processes(self) -> int:
        """How many processes the devices belong to."""
        found = re.search(r", (\d+) processes$", self.device_kind)
        return int(found[1]) if found else 1

    @property
    def is_virtual(self) -> bool:
        """Whether some of the devices are virtual: one CPU is all that a process really has."""
        return self.platform == "cpu" and self.devices > self.processes

    def same_platform(self, other: HardwareKey) -> bool:
        """Whether programs compiled for the two are comparable: one platform, one number of devices."""
        return self.platform == other.platform and self.devices == other.devices


def compiled_for(target: str) -> str:
    """Why calls of a case that is compiled for a target cannot be measured."""
    return f"compiled for {target}, never called"


COMPILE_OPTIONS = "compile_options"
"""Entry of the environment: a hash of what the compiler is given, where that differs from its defaults by a setting, a
variable or a file."""
UNKNOWN_SETTINGS = "settings"
"""Entry of the environment where the defaults are not known: nothing may then be called unchanged."""
CORES = "cores"
"""Entry of the environment where a process may not use all cores: how many of how many."""
CORES_GIVEN_UP = "cores_given_up"
"""Entry of the environment where the process began with more cores: what it runs gave them up, not the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxDefaults:
    """The settings of a fresh process without any variable or call that sets one."""

    jax: str  # version of jax
    file: str  # the file that jax was imported from: another installation has other defaults
    config: Mapping[str, str]  # every option of `jax.config`, as text
    compile_options: str  # hash of the options that the compiler is given, XLA's flags included


_VERSION = re.compile(r"(\d+)\.(\d+)(?!\d)")
_MARK = "-jax-"


def release_line(version: str) -> str:
    """The first two numbers of a version: ``0.12`` of ``0.12.0.1``.

    Raises:
        ValueError: If it does not start with two numbers.
    """
    found = _VERSION.match(version)
    if found is None:
        raise ValueError(f"expected a version of jax such as 0.12.0, found {version!r}")
    return f"{int(found[1])}.{int(found[2])}"


def folder_name(slug: str, line: str) -> str:
    """The folder of the baselines of one hardware and one release line."""
    return f"{slug}{_MARK}{line}"


def split_folder_name(name: str) -> tuple[str, str] | None:
    """Hardware and release line of a folder; ``None`` where it is named for none."""
    slug, mark, line = name.rpartition(_MARK)
    return (slug, line) if mark and _VERSION.fullmatch(line) else None


def distance(line: str, here: str) -> tuple[int, int, int]:
    """Sort key of lines by how near they are to ``here``: itself, older ones from the newest, newer ones from the oldest."""
    (major, minor), (own_major, own_minor) = (map(int, one.split(".")) for one in (line, here))
    if (major, minor) == (own_major, own_minor):
        return (0, 0, 0)
    if (major, minor) < (own_major, own_minor):
        return (1, -major, -minor)
    return (2, major, minor)
