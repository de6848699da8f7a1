"""What a loop is made of, and what may be seen of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from jaxgate.model.machine import HardwareKey

FEWEST = 14
"""Steps that a loop must have: 3 to warm up, 3 or more in each of the windows that are looked at."""
WARM = 3
"""Steps in which everything may be traced, compiled and filled."""

LIMITS: Mapping[str, float] = {
    "restored_leaves": 0,
    "undonated_bytes": 0,
    "resumed_compiles": 0,
    "other_ends": 0,
    "repeated_compiles": 0,
    "kept_arrays": 0,
    "cyclic_arrays": 0,
    "cyclic_objects": 0,
    "threads": 0,
    "open_files": 0,
    "saved_files": 0,
    "saved_bytes": 1_000_000,
    "log_reads": 0,
    "kept_bytes": 1024,
    "batch_ratio": 4,
    "save_ratio": 1.5,
    "restore_ratio": 3,
    "waiting": 0.5,
}
"""What is counted, and how much of it may be; what explains the others comes first.

``kept_bytes`` is a kilobyte a step, a gigabyte in a million steps. The ratios are host memory over that of the batch, or of the
state; ``tests/loop/test_ratios.py`` has those of libraries. ``waiting`` is a share of a step.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A training loop in its parts.

    Raises:
        TypeError: If a part is missing or is none.
        ValueError: If there are too few steps, or ``allow`` names what is not counted.
    """

    make_state: Callable[[], Any]
    batches: Callable[[], Iterable[Any]]
    step: Callable[[Any, Any], tuple[Any, Any]]
    save: Callable[[Path, Any], None] | None = None
    restore: Callable[[Path, Any], Any] | None = None
    log: Callable[[int, Any], None] | None = None
    steps: int = 20
    allow: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        parts = {name: getattr(self, name) for name in ("make_state", "batches", "step", "save", "restore", "log")}
        for name, part in parts.items():
            if not callable(part) and not (part is None and name in ("save", "restore", "log")):
                raise TypeError(f"expected a function as {name}=, found {part!r}")
        if (self.save is None) != (self.restore is None):
            raise TypeError("expected save= and restore= together: what is saved is restored by another process")
        if self.steps < FEWEST:
            raise ValueError(f"expected steps={FEWEST} or more, found {self.steps}")
        if unknown := sorted(set(self.allow) - set(LIMITS)):
            raise ValueError(f"expected some of {', '.join(LIMITS)} in allow=, found {', '.join(unknown)}")

    @property
    def half(self) -> int:
        """The step after which it is saved."""
        return self.steps // 2


@dataclass(frozen=True, slots=True)
class Count:
    """How much there is of something, and what or where it is."""

    value: float
    what: str = ""  # in words, for a sentence
    where: str = ""  # the culprit: a line, an argument, what holds it


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a leaf of a state arrives at a step: what decides whether it can be donated, and is where it was."""

    path: str
    kind: str  # `device array`, `uncommitted device array`, `NumPy`; empty of a single number, which costs nothing to send
    aval: str  # dtype and shape; empty of a number of Python's
    spread: str = ""  # its sharding, where it is on several devices

    def change(self, restored: Arrival) -> str:
        """What is otherwise once it is restored, in words; empty where nothing is, or more is fixed than was."""
        fixed = self.kind == f"uncommitted {restored.kind}"
        moved = self.kind and restored.kind and self.kind != restored.kind and not fixed
        if moved or (self.aval and restored.aval and self.aval != restored.aval):
            return f"{self.path}: {self.kind} {self.aval} → {restored.kind} {restored.aval}"
        return f"{self.path}: {self.spread} → {restored.spread}" if self.spread != restored.spread else ""


Counts = Mapping[str, Count]
"""By the names of ``LIMITS``; what could not be counted is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the steps of a loop showed."""

    counts: Counts
    hardware: HardwareKey  # where its state lies
    step_ns: tuple[int, ...]  # each step of the timed window: data, step and log, until its result is there
    wait_ns: tuple[int, ...]  # what of it the next batch took

    @property
    def waiting(self) -> float:
        """The share of the steps that waits for batches."""
        return sum(self.wait_ns) / sum(self.step_ns)

    def __str__(self) -> str:
        """The times in one line."""
        typical, slowest = median(self.step_ns) / 1e6, max(self.step_ns) / 1e6
        return f"a step takes {typical:.3g} ms, {self.waiting:.0%} of it for the batch, the slowest {slowest:.3g} ms"
