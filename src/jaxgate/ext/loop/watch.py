"""Take the steps of a loop and count what each of them leaves behind.

They are taken in windows, so that nothing that counts slows what is timed: ``WARM`` steps in which all is compiled; steps that are
timed; around the middle three whose log is looked into, each followed by a save; and the rest under ``tracemalloc``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

from jaxgate.ext.loop.held import FRAMES, Collector, Held, Memory, Resident, listening, memory, open_files
from jaxgate.ext.loop.model import WARM, Arrival, Count, Loop, Seen, StepTime
from jaxgate.ext.loop.moves import Moves
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.words import plural
from jaxgate.observe.arguments.arrival import describe_given
from jaxgate.observe.arguments.signature import ArgumentKey, argument_keys, difference, leaves_with_paths, short
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.correctness import refuse_nan
from jaxgate.observe.machine.environment import hardware_key
from jaxgate.observe.source_lines import short_path
from jaxgate.observe.tools import Announce
from jaxgate.observe.trace.clocks import Clock
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.retraces import Blame

SMALL = 1_000_000
"""Bytes of host memory below which no ratio is judged: what Python itself needs would decide it."""
SHORT_NS = 5_000_000
"""Waiting of a step below which no share of it is judged."""
_NAMES = ("state", "batch")
HOST = "needs {} of the host's memory for"


class Steps:
    """The steps of a loop in this process, one after the other."""

    def __init__(self, loop: Loop, state: Any, *, after: int, progress: Announce, clock: Clock) -> None:
        self.loop, self.state, self.number = loop, state, after
        self.compiled: list[dict[str, str]] = []  # by step what each function was traced or compiled for
        self.times: list[StepTime] = []
        self.out: Any = None
        self.batch: Any = None
        self.batch_bytes = 0  # host memory that it needed at most; 0 if `tracemalloc` does not listen
        self.announce, self.clock = progress, clock
        self._blame = Blame(complete=True)
        self._before: tuple[ArgumentKey, ...] = ()
        with guarded("making the batches"):
            self.feed: Iterator[Any] = iter(loop.batches())
            for _ in islice(self.feed, after):
                pass

    def take(self, *, look: bool = False) -> dict[str, Count]:
        """Take one step with the next batch, and log it; with ``look``, count what log and step read, and what the step sends."""
        self.number += 1
        self.announce(f"step {self.number} of {self.loop.steps}")
        with Collector(self.clock) as collector:
            begin = self.clock()
            with memory() as needed, guarded(f"waiting for batch {self.number}"):
                self.batch = next(self.feed, self)
            if self.batch is self:
                found = f"found {self.number - 1}; let batches() give more"
                raise InvalidCaseError("waiting for a batch", f"expected {self.loop.steps} batches, {found}")
            wait_ns = self.clock() - begin
            self.batch_bytes = needed.most
            keys = argument_keys((self.state, self.batch), {}, _NAMES)
            begin = self.clock() - wait_ns
            with record(explain=True) as events, guarded(f"step {self.number} of the loop"):
                moves = self._step(look=look)
                log_begins = self.clock()
                moves["log_reads"] = self._log(look=look)
                log_ns = self.clock() - log_begins
                jax.block_until_ready((self.state, self.out))
            took_ns = self.clock() - begin
        moved = difference(self._before or keys, keys)
        self.compiled.append(
            {
                one.shown: moved if moved and one.kind not in ("new", "config") else str(one)
                for one in self._blame.culprits(events)
            }
        )
        compiles = bool(self.compiled[-1])
        self.times.append(StepTime(self.number, took_ns, wait_ns, log_ns, collector.took_ns, compiles))
        self._before = keys
        return moves

    def _step(self, *, look: bool) -> dict[str, Count]:
        moves = Moves(jax.tree.leaves(self.batch))
        step = self.loop.step
        result = moves.run(step, self.state, self.batch) if look else step(self.state, self.batch)
        if not isinstance(result, tuple) or len(result) != 2:  # noqa: PLR2004 - a pair
            raise TypeError(f"expected step= to give (state, what is logged), found {type(result).__name__}")
        self.state, self.out = result
        return {
            "step_reads": moves.count("step= reads what the device gives"),
            "sent_ratio": ratio(
                "a step sends {} to its devices beside its batch of {}", moves.sent_bytes, self.batch, moves.sent_most
            ),
        }

    def _log(self, *, look: bool) -> Count:
        """Log the step; results of earlier steps may be read."""
        if self.loop.log is None:
            return Count(0)
        mine = {id(leaf) for leaf in jax.tree.leaves(self.out)}
        moves = Moves([array for array in jax.live_arrays() if id(array) not in mine] if look else [])
        if look:
            moves.run(self.loop.log, self.number, self.out)
        else:
            self.loop.log(self.number, self.out)
        return moves.count("log= reads a result of each step")

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
class Notes:
    """What the process that restores is compared with."""

    arrivals: Sequence[Arrival]  # the leaves of the state as they were saved
    taken: Sequence[str]  # leaves that the next step donates
    compiled: Counter[str]  # how often each function is compiled after the first step


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
    for _ in range(WARM):
        steps.take()
    resident = Resident()
    for _ in range(WARM + 1, loop.half):
        steps.take()
        resident.look()
    timed = tuple(steps.times[WARM:])
    looked = [steps.take(look=True)]
    saved_leaves, before = arrivals(steps.state), leaves_with_paths((steps.state,), {}, _NAMES[:1])
    saves = [_saved(steps, saved / "1")]
    looked.append(steps.take(look=True))
    gone = taken(before)
    del before
    saves.append(_saved(steps, saved / "2"))
    looked.append(steps.take(look=True))
    saves.append(_saved(steps, saved / "3"))
    counts = _left(steps, resident)
    took_ns = None if loop.save is None else min(one.took_ns for one in saves[1:])
    seen = Seen(
        counts=counts, hardware=_hardware(steps.state), steps=tuple(steps.times[WARM:]), timed=timed, save_ns=took_ns
    )
    counts["repeated_compiles"] = steps.repeated()
    for name in looked[0]:
        counts[name] = min((one[name] for one in looked), key=lambda one: one.value)
    counts["waiting"] = _waiting(seen, steps.feed)
    if loop.save is not None:
        counts |= _of_saves(saves, steps.state, place_of(loop.save))
    refuse_nan(steps.state, "the state at the end")
    return steps.state, seen, Notes(saved_leaves, gone, compiled_later(steps.compiled))


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


@dataclass(frozen=True, slots=True)
class _Saved:
    """What a save needs and leaves."""

    memory: Memory = field(default_factory=Memory)
    files: Counter[str] = field(default_factory=Counter)  # that it leaves open
    took_ns: int = 0


def _saved(steps: Steps, into: Path) -> _Saved:
    """A save into a new folder."""
    if steps.loop.save is None:
        return _Saved()
    steps.announce("saving")
    into.mkdir()
    files = open_files()
    with listening(), memory() as needed, guarded("saving"):
        begin = steps.clock()
        steps.loop.save(into, steps.state)
        took_ns = steps.clock() - begin
    return _Saved(needed, open_files() - files, took_ns)


def _of_saves(saves: Sequence[_Saved], state: Any, where: str) -> dict[str, Count]:
    """What each save needs and leaves; the first one may import, and open what the others use."""
    most, kept = (min(getattr(one.memory, name) for one in saves[1:]) for name in ("most", "kept"))
    files = min((one.files for one in saves[1:]), key=lambda found: found.total())
    return {
        "save_ratio": ratio(f"save= {HOST} a state of {{}}", most, state, where),
        "saved_bytes": Count(kept, f"each save keeps {kept / 1e6:,.1f} MB of the host's memory", where),
        "saved_files": Count(
            files.total(), f"each save leaves {plural(files.total(), 'file')} open", next(iter(files), "")
        ),
    }


def _left(steps: Steps, resident: Resident) -> dict[str, Count]:
    """The rest of the steps: what each of them leaves behind, and what its batch needs."""
    batches: list[Count] = []
    left = steps.loop.steps - steps.number
    held = Held()
    resident.begin()
    with listening(FRAMES):
        for _ in range(left):
            steps.take()
            batches.append(
                ratio(f"batches() {HOST} a batch of {{}}", steps.batch_bytes, steps.batch, position_of(steps.feed))
            )
            held.look(steps.mine)
            resident.look()
    return {**held.counts(), "resident_bytes": resident.count(), "batch_ratio": min(batches, key=lambda one: one.value)}


def _waiting(seen: Seen, feed: Iterator[Any]) -> Count:
    typical = median(step.wait_ns for step in seen.timed)
    told = f"{seen.waiting:.0%} of a step waits for its batch, {typical / 1e6:.3g} ms"
    return Count(seen.waiting if typical >= SHORT_NS else 0.0, told, position_of(feed))


def compiled_later(steps: Sequence[Mapping[str, str]]) -> Counter[str]:
    """How often each function is compiled after the first of some steps."""
    return Counter(name for step in steps[1:] for name in step)


def ratio(told: str, nbytes: int, tree: Any, where: str) -> Count:
    """Bytes over those of a tree's arrays; nothing where they are few. ``told`` has a place for either."""
    held = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(tree))
    times = nbytes / max(held, 1)
    text = told.format(*(f"{size / 1e6:,.1f} MB" for size in (nbytes, held)))
    return Count(times if nbytes >= SMALL else 0.0, f"{text}, {times:.1f} ×", where)


def arrivals(state: Any) -> list[Arrival]:
    """How each leaf of a state arrives at a step."""
    return [_arrival(path, leaf) for path, leaf in leaves_with_paths((state,), {}, _NAMES[:1])]


def _arrival(path: str, leaf: Any) -> Arrival:
    if isinstance(leaf, jax.Array):
        spread = str(leaf.sharding) if len(leaf.sharding.device_set) > 1 else ""
        return Arrival(path, describe_given(leaf).label, short(leaf), spread)
    known = isinstance(leaf, (np.ndarray, np.generic))
    return Arrival(path, "NumPy" if getattr(leaf, "ndim", 0) else "", short(leaf) if known else "")


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
