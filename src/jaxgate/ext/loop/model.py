"""What a loop is made of, and what may be seen of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    "step_reads": 0,
    "kept_bytes": 1024,
    "resident_bytes": 1_000_000,
    "batch_ratio": 4,
    "sent_ratio": 4,
    "save_ratio": 1.5,
    "restore_ratio": 3,
    "waiting": 0.5,
}
"""What is counted, and how much of it may be; what explains the others comes first.

``kept_bytes`` is a kilobyte a step, a gigabyte in a million steps; ``resident_bytes`` is what no Python knows of. The ratios are host memory over that of the batch, or of the
state; ``tests/loop/test_ratios.py`` has those of libraries. ``waiting`` is a share of a step.
"""

_SMALL, _LONG = 0.01, 1.5
"""Share of a step below which its log is not told, and how much longer than a typical step one is that is explained."""


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
        """What is otherwise once a leaf is restored; empty where nothing is, or more is fixed than was."""
        fixed = self.kind == f"uncommitted {restored.kind}"
        moved = self.kind and restored.kind and self.kind != restored.kind and not fixed
        if moved or (self.aval and restored.aval and self.aval != restored.aval):
            return f"{self.path}: {self.kind} {self.aval} → {restored.kind} {restored.aval}"
        return f"{self.path}: {self.spread} → {restored.spread}" if self.spread != restored.spread else ""


Counts = Mapping[str, Count]
"""By the names of ``LIMITS``; what could not be counted is left out."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Where the time of a step goes, in nanoseconds."""

    number: int  # from 1 on
    took_ns: int  # batch, step and log, until the result is there
    wait_ns: int  # for its batch
    log_ns: int
    collector_ns: int  # Python's collector, which may come anywhere in it
    compiles: bool  # whether something is traced or compiled

    def why(self, typical_ns: float) -> str:
        """What made a step longer than a typical one, where it explains half of that; else empty."""
        if self.took_ns < _LONG * typical_ns:
            return ""
        if self.compiles:
            return f" (step {self.number} compiles)"
        parts = {"batch": self.wait_ns, "log": self.log_ns, "Python's collector": self.collector_ns}
        name, took_ns = max(parts.items(), key=lambda one: one[1])
        explains = took_ns * 2 >= self.took_ns - typical_ns
        return f" (step {self.number}: {took_ns / 1e6:.3g} ms {name})" if explains else f" (step {self.number})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the steps of a loop showed."""

    counts: Counts
    hardware: HardwareKey  # where its state lies
    steps: tuple[StepTime, ...]  # all after the first ones
    timed: tuple[StepTime, ...]  # of steps in which nothing else is looked at
    save_ns: float | None = None  # what a save takes

    @property
    def waiting(self) -> float:
        """The share of the timed steps that waits for batches."""
        return self._share([step.wait_ns for step in self.timed])

    def _share(self, times: Sequence[int]) -> float:
        return sum(times) / sum(step.took_ns for step in self.timed)

    def __str__(self) -> str:
        """The times in one line."""
        typical_ns = median(step.took_ns for step in self.timed)
        log = self._share([step.log_ns for step in self.timed])
        parts = [f"{self.waiting:.0%} batch", *([f"{log:.0%} log"] if log >= _SMALL else [])]
        slowest = max(self.timed, key=lambda step: step.took_ns)
        why = slowest.why(typical_ns)
        saved = [] if self.save_ns is None else [f"a save {self.save_ns / 1e6:.3g} ms"]
        step = f"a step {typical_ns / 1e6:.3g} ms ({', '.join(parts)})"
        return ", ".join([step, f"slowest {slowest.took_ns / 1e6:.3g} ms{why}", *saved])
