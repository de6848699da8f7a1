"""Take the steps of a loop and count what each of them leaves behind.

They are taken in windows, so that nothing that counts slows what is timed: ``WARM`` steps in which all is compiled; steps that are
timed; around the middle three whose log is looked into, each followed by a save; and the rest under ``tracemalloc``.
"""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxgate.ext.loop.held import Held, saved_files, saving
from jaxgate.ext.loop.model import WARM, Arrival, Count, Loop, Seen
from jaxgate.ext.loop.reads import Reads
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.words import plural
from jaxgate.observe.arguments.signature import ArgumentKey, argument_keys, leaves_with_paths, short
from jaxgate.observe.errors import guarded
from jaxgate.observe.machine.environment import hardware_key
from jaxgate.observe.source_lines import short_path
from jaxgate.observe.tools import Announce
from jaxgate.observe.trace.clocks import Clock
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.retraces import Blame, retrace_lines

SMALL = 1_000_000
"""Bytes of host memory below which no ratio is judged: what Python itself needs would decide it."""
SHORT_NS = 5_000_000
"""Waiting of a step below which no share of it is judged."""
SAVES = 3
_NAMES = ("state", "batch")


class Steps:
    """The steps of a loop in this process, one after the other.

    Attributes:
        state: What the last step left.
        number: Which one that was, of the whole loop.
        compiled: By step what each function was traced or compiled for.
        took_ns: The time of each step with its batch, and that of the batch.
    """

    def __init__(self, loop: Loop, state: Any, *, after: int, progress: Announce, clock: Clock) -> None:
        self.loop, self.state, self.number = loop, state, after
        self.compiled: list[dict[str, str]] = []
        self.took_ns: list[tuple[int, int]] = []
        self.out: Any = None
        self.batch: Any = None
        self.announce, self._clock = progress, clock
        self._blame = Blame(complete=True)
        self._before: tuple[ArgumentKey, ...] = ()
        with guarded("making the batches"):
            self.feed: Iterator[Any] = iter(loop.batches())
            for _ in islice(self.feed, after):
                pass

    def take(self, log: Callable[[int, Any], None] | None = None) -> int:
        """Take one step with the next batch and log it; its result is there afterwards.

        Args:
            log: What it is logged by; that of the loop by default.

        Returns:
            Host memory that the next batch needed at most, in bytes; 0 if ``tracemalloc`` does not listen.
        """
        self.number += 1
        self.announce(f"step {self.number} of {self.loop.steps}")
        log = log or self.loop.log
        begin = self._clock()
        with peak_memory() as needed, guarded(f"waiting for batch {self.number}"):
            self.batch = next(self.feed, self)
        if self.batch is self:
            found = f"found {self.number - 1}; let batches() give more"
            raise InvalidCaseError("waiting for a batch", f"expected {self.loop.steps} batches, {found}")
        waited = self._clock() - begin
        keys = argument_keys((self.state, self.batch), {}, _NAMES)
        begin = self._clock() - waited
        with record(explain=True) as events, guarded(f"step {self.number} of the loop"):
            result = self.loop.step(self.state, self.batch)
            if not isinstance(result, tuple) or len(result) != 2:  # noqa: PLR2004 - a pair
                raise TypeError(f"expected step= to give (state, what is logged), found {type(result).__name__}")
            self.state, self.out = result
            del result
            if log is not None:
                log(self.number, self.out)
            jax.block_until_ready((self.state, self.out))
        self.took_ns.append((self._clock() - begin, waited))
        culprits = self._blame.culprits(events)
        lines = retrace_lines("", culprits, subject="", before=self._before or keys, after=keys, names=_NAMES)
        cause = lines[0].partition(": ")[2] if lines else ""
        self.compiled.append({one.shown: cause or str(one) for one in culprits})
        self._before = keys
        return needed[0]

    @property
    def mine(self) -> tuple[Any, ...]:
        """What the loop itself holds."""
        return self.state, self.out, self.batch

    def repeated(self) -> Count:
        """The function that is compiled again and again after the first steps: in more than a quarter of them."""
        later = self.compiled[WARM:]
        often = Counter(name for step in later for name in step)
        name, count = max(often.items(), key=lambda one: one[1], default=("", 0))
        if count <= max(1, len(later) // 4):
            return Count(0)
        cause = next(step[name] for step in reversed(later) if name in step)
        return Count(
            count, f"{name} is compiled in {count} of the {plural(len(later), 'step')} after the first ones", cause
        )


@dataclass(frozen=True, slots=True)
class Save:
    """What one save needed of the host's memory at most and still held at its end, in bytes, and the files that it left open."""

    needed: int
    kept: int
    files: Counter[str]


@dataclass(slots=True)
class Notes:
    """What the process that restores is told."""

    arrivals: list[Arrival] = field(default_factory=list)  # the leaves of the state as they were saved
    taken: list[str] = field(default_factory=list)  # those that the next step donates
    compiled: list[str] = field(default_factory=list)  # functions that are compiled after the first step


def watch(
    loop: Loop, *, saved: Path, progress: Announce, clock: Clock = time.perf_counter_ns
) -> tuple[Any, Seen, Notes]:
    """Take all steps of a loop; the state after half of them is saved in ``saved/1``.

    Returns:
        The state at its end, what the steps showed, and what the process that restores is compared with.

    Raises:
        InvalidCaseError: If a part of the loop fails.
    """
    steps = Steps(loop, made(loop, progress), after=0, progress=progress, clock=clock)
    for _ in range(loop.half - 1):
        steps.take()
    window = steps.took_ns[WARM:]
    notes, saves = Notes(), list[Save]()
    reads = [_middle(loop, steps, saved / str(number), notes, saves) for number in range(1, SAVES + 1)]
    counts = _remembered(steps)
    counts["repeated_compiles"] = steps.repeated()
    counts["log_reads"] = min(reads, key=lambda one: one.value)
    if loop.save is not None:
        counts["save_ratio"] = ratio("save=", saves[0].needed, steps.state, place_of(loop.save))
        counts["saved_files"] = saved_files([one.files for one in saves])
        kept = min(one.kept for one in saves[1:])
        told = f"each save keeps {kept / 1e6:,.1f} MB of the host's memory"
        counts["saved_bytes"] = Count(kept, told, place_of(loop.save))
    counts["waiting"] = _waiting(window, steps.feed)
    notes.compiled = sorted({name for step in steps.compiled[1:] for name in step})
    took, waited = zip(*window, strict=True)
    return steps.state, Seen(counts=counts, hardware=_hardware(steps.state), step_ns=took, wait_ns=waited), notes


def made(loop: Loop, progress: Announce) -> Any:
    """The state of the first step, once it is there."""
    progress("making the state")
    with guarded("making the state"):
        state = loop.make_state()
        jax.block_until_ready(state)
    return state


def _hardware(state: Any) -> HardwareKey:
    arrays = [leaf for leaf in jax.tree.leaves(state) if isinstance(leaf, jax.Array)]
    devices = {device for array in arrays for device in array.sharding.device_set} or {jax.devices()[0]}
    return hardware_key(min(devices, key=lambda device: device.id), len(devices))


def _middle(loop: Loop, steps: Steps, into: Path, notes: Notes, saves: list[Save]) -> Count:
    """A step whose log is looked into, and a save after it; gives what the log read."""
    before = leaves_with_paths((steps.state,), {}, _NAMES[:1]) if len(saves) == 1 else []
    reads, log, save = Reads(), loop.log, loop.save
    steps.take(None if log is None else lambda number, out: reads.run(log, number, out))
    notes.taken += taken(before)
    if save is not None:
        if not saves:
            notes.arrivals = arrivals(steps.state)
        steps.announce("saving")
        into.mkdir()
        with using_memory() as needed, guarded("saving"):
            files = saving(lambda: save(into, steps.state))
        saves.append(Save(needed[0], needed[1], files))
    return reads.count


def _remembered(steps: Steps) -> dict[str, Count]:
    """The rest of the steps: what each of them leaves behind, and what its batch needs."""
    batches: list[Count] = []
    left = steps.loop.steps - steps.number
    held = Held(left)
    with held.listening():
        for _ in range(left):
            needed = steps.take()
            batches.append(ratio("batches()", needed, steps.batch, position_of(steps.feed), of="a batch"))
            held.look(steps.mine)
    return {**held.counts(), "batch_ratio": min(batches, key=lambda one: one.value)}


def _waiting(window: Sequence[tuple[int, int]], feed: Iterator[Any]) -> Count:
    share = sum(waited for _, waited in window) / sum(took for took, _ in window)
    typical = sorted(waited for _, waited in window)[len(window) // 2]
    told = f"{share:.0%} of a step waits for its batch, {typical / 1e6:.3g} ms"
    return Count(share if typical >= SHORT_NS else 0.0, told, position_of(feed))


def ratio(who: str, needed: int, tree: Any, where: str, of: str = "a state") -> Count:
    """Host memory over that of arrays; nothing where it is little."""
    nbytes = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(tree))
    times = needed / max(nbytes, 1)
    told = f"{who} needs {needed / 1e6:,.1f} MB of the host's memory for {of} of {nbytes / 1e6:,.1f} MB, {times:.1f} ×"
    return Count(times if needed >= SMALL else 0.0, told, where)


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """How much more memory a block needs at most, and holds at its end, than there was, where ``tracemalloc`` listens."""
    needed = [0, 0]
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    yield needed
    if tracemalloc.is_tracing():
        now, peak = tracemalloc.get_traced_memory()
        needed[:] = [peak - before, now - before]


@contextmanager
def using_memory() -> Iterator[list[int]]:
    """``peak_memory`` of a block for which ``tracemalloc`` begins to listen."""
    tracemalloc.start()
    try:
        with peak_memory() as needed:
            yield needed
    finally:
        tracemalloc.stop()


def arrivals(state: Any) -> list[Arrival]:
    """How each leaf of a state arrives at a step."""
    return [_arrival(path, leaf) for path, leaf in leaves_with_paths((state,), {}, _NAMES[:1])]


def _arrival(path: str, leaf: Any) -> Arrival:
    if not isinstance(leaf, jax.Array):
        kind = "NumPy array" if getattr(leaf, "ndim", 0) else ""
        return Arrival(path, kind, short(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else "")
    spread = str(leaf.sharding) if len(leaf.sharding.device_set) > 1 else ""
    return Arrival(path, "jax.Array", short(leaf), bool(leaf.committed), spread)


def taken(leaves: Sequence[tuple[str, Any]]) -> list[str]:
    """Which of these leaves a step has donated since."""
    return [path for path, leaf in leaves if isinstance(leaf, jax.Array) and leaf.is_deleted()]


def place_of(function: Any) -> str:
    """Where a function stands: ``save at train.py:12``."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return name if code is None else f"{name} at {short_path(code.co_filename)}:{code.co_firstlineno}"


def position_of(feed: Iterator[Any]) -> str:
    """Where a generator waits for the next step; the type of another iterator."""
    frame, code = getattr(feed, "gi_frame", None), getattr(feed, "gi_code", None)
    if frame is None or code is None:
        return type(feed).__qualname__
    return f"{code.co_qualname} at {short_path(code.co_filename)}:{frame.f_lineno}"
