"""What ``jaxgate doctor`` looks at, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jaxgate.model.machines.hardware import HardwareKey


class Level(StrEnum):
    """How much a remark matters."""

    OK = "ok"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that was looked at.

    Attributes:
        level: ``BAD`` where a gate would fail, or say nothing.
        about: What was looked at, in a word.
        found: What is there, and what that means for a gate.
        remedy: The next command or step; empty where there is nothing to do.
    """

    level: Level
    about: str
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """A machine, what is installed, and a project. Without a device nothing else was looked at.

    Attributes:
        versions: Installed packages; ``None`` for one that is not.
        hardware: The device that JAX would use first; ``None`` if it finds none.
        no_hardware: Why it finds none; empty where JAX could not be asked.
        devices: How many of these there are.
        settings: What somebody set of the compiler, the runtime or JAX.
        unfit: Settings with which no case can be judged, each with the reason.
        cache: Folder of JAX's persistent compilation cache; empty without one.
        objections: What speaks against timing anything now.
        clock_ns: The smallest step of the clock.
        spread: How many times longer than at its quickest one piece of Python takes, in one round of ten.
        in_git: Whether the project is in a git checkout.
        folder: The folder of the baselines, as a person would write it.
        line: The release line of jax.
        own: Baselines of this hardware and release line.
        borrowed: Baselines of other hardware or another line that would be compared with, by folder.
        unreadable: Baselines that cannot be trusted.
        ignored: Files of the baselines that git ignores.
        differences: What differs between this environment and that of the baselines that would be used.
    """

    versions: Mapping[str, str | None]
    hardware: HardwareKey | None
    no_hardware: str = ""
    devices: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    unfit: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""
    objections: tuple[str, ...] = ()
    clock_ns: int = 0
    spread: float = 1.0
    in_git: bool = True
    folder: str = "baselines"
    line: str = ""
    own: int = 0
    borrowed: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
