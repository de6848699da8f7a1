"""What a measurement works with besides the case: a memory, clocks, other ranks, and progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from jaxgate.ext.energy.counters import EnergyMeters
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.model.baseline import Baseline
from jaxgate.model.machine import HardwareKey
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.trace.clocks import CLOCKS, Clocks
from jaxgate.observe.trace.lowering import Lowered
from jaxgate.observe.trace.stages import compile_here

Announce = Callable[[str], None]
"""Called with the stage that begins."""


Accepted = Callable[[HardwareKey], Baseline | None]
"""Gives the baseline of a case on some hardware."""


class ReferenceStore(Protocol):
    """Where facts and outputs of references are kept between runs; losing it costs time only."""

    def load(self, key: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]] | None:
        """Give back what was saved under a key, or ``None``."""

    def save(self, key: str, facts: dict[str, Any], outputs: list[np.ndarray[Any, Any]]) -> None:
        """Keep numbers and arrays under a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every stage of a measurement is handed."""

    store: ReferenceStore  # remembers references, and other programs, between runs
    progress: Announce = lambda _: None  # called with what is being done, before anything that may take long
    sampling: bool = True  # whether to time calls; the counters are taken either way
    accepted: Accepted = lambda _: None
    recording: bool = False  # whether the case is recorded: one that retraces is refused before it is timed
    clocks: Clocks = CLOCKS  # what is timed with which
    together: Lockstep = ALONE  # the ranks that run the case, all of them with the same calls
    target: TargetCompiler | None = None  # compiles for hardware that is not there; `None` where the case runs here
    meters: EnergyMeters | None = None  # counters of energy; `None` where nobody asks for it

    @property
    def platform(self) -> str | None:
        """What functions are lowered for; ``None`` for that of their arguments."""
        return None if self.target is None else self.target.target.lowering

    @property
    def compiler(self) -> Callable[[Lowered], Any]:
        """What compiles: for the devices that are here, or for the target."""
        return compile_here if self.target is None else self.target.compile
