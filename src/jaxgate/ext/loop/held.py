"""What each step leaves behind: arrays, reference cycles, memory of Python's, threads, open files."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import jax

from jaxgate.ext.loop.model import Count
from jaxgate.model.words import plural
from jaxgate.observe.execute.left_behind import LeftBehind
from jaxgate.observe.machine.load import memory_bytes
from jaxgate.observe.source_lines import is_own_file, is_project_file, short_path
from jaxgate.observe.trace.clocks import Clock

FRAMES = 12
"""Callers of a block of memory that are kept, to find the project's line among them."""
_OPEN = Path("/proc/self/fd")
_IDLE = 4
"""Looks at the memory of this process while nothing is done."""


class Held:
    """Looks at this process after each of some steps."""

    def __init__(self) -> None:
        self._left = LeftBehind()
        self._arrays: list[int] = []
        self._threads: list[list[str]] = []
        self._files: list[Counter[str]] = []
        self._snapshot: tracemalloc.Snapshot | None = None
        self._kept: dict[str, int] | None = None  # bytes by line that each step so far has kept

    def look(self, mine: Sequence[Any]) -> None:
        """Look after a step, once all arrays are there: a transfer holds what it reads. The loop itself holds ``mine``."""
        jax.block_until_ready(jax.live_arrays())
        self._left.look(mine)
        own = {id(leaf) for leaf in jax.tree.leaves(tuple(mine))}
        self._remember(tracemalloc.take_snapshot())
        self._arrays.append(sum(id(array) not in own for array in jax.live_arrays()))
        self._threads.append([thread.name for thread in threading.enumerate()])
        self._files.append(open_files())

    def counts(self) -> dict[str, Count]:
        """What each step left behind; 0 where only some of them did."""
        left = self._left
        arrays = min(left.arrays or 0, _each(self._arrays))
        threads = _each([len(names) for names in self._threads])
        files = _each([found.total() for found in self._files])
        own = " at " in left.cycles  # of the project; cycles of a library's are the library's
        return {
            "kept_arrays": Count(arrays, f"each step keeps {left.described}", left.described),
            "cyclic_arrays": Count(
                left.cyclic_arrays or 0,
                f"each step leaves {plural(left.cyclic_arrays or 0, 'array')} to Python's collector, in a cycle",
                left.cycles,
            ),
            "cyclic_objects": Count(
                (left.cyclic_objects or 0) if own else 0,
                f"each step leaves a reference cycle: {left.cycles}",
                left.cycles,
            ),
            "kept_bytes": self._kept_bytes(),
            "threads": Count(threads, f"each step leaves {plural(threads, 'thread')} running", self._threads[-1][-1]),
            "open_files": Count(
                files,
                f"each step leaves {plural(files, 'file')} open",
                next(iter(self._files[-1] - self._files[0]), ""),
            ),
        }

    def _remember(self, now: tracemalloc.Snapshot) -> None:
        """Keep lines that hold more after each step so far, if they hold more again.

        A loader that is ahead holds more after some steps, and less after others.
        """
        if self._snapshot is not None:
            grown = _grown(self._snapshot, now)
            before = grown if self._kept is None else self._kept
            self._kept = {line: min(before[line], grown[line]) for line in before.keys() & grown.keys()}
        self._snapshot = now

    def _kept_bytes(self) -> Count:
        """The line of the project that keeps most."""
        line, nbytes = max((self._kept or {}).items(), key=lambda one: (one[1], one[0]), default=("", 0))
        return Count(nbytes, f"each step keeps {nbytes:,} bytes of Python's memory", f"made at {line}")


class Resident:
    """Memory of this process that is no file's, after each step: also what native code allocates."""

    def __init__(self) -> None:
        self._least: int | None = None
        self.begin()

    def begin(self) -> None:
        """Begin anew: something else was done than a step."""
        self._before: int | None = None

    def look(self) -> None:
        """Look after a step."""
        now = _anonymous_bytes()
        if self._before is not None:
            more = now - self._before
            self._least = more if self._least is None else min(self._least, more)
        self._before = now

    def count(self) -> Count:
        """The least growth of a step, beyond what moves while nothing is done."""
        idle = [_anonymous_bytes() for _ in range(_IDLE)]
        floor = max(abs(after - before) for before, after in pairwise(idle))
        nbytes = max(0, (self._least or 0) - floor)
        return Count(nbytes, f"the process holds {nbytes / 1e6:,.1f} MB more after each step")


def _anonymous_bytes() -> int:
    """0 where the system does not say."""
    with suppress(OSError):
        return memory_bytes("RssAnon")
    return 0


class Collector:
    """The time that Python's collector takes, in nanoseconds."""

    def __init__(self, clock: Clock) -> None:
        self.took_ns, self._since, self._clock = 0, 0, clock

    def __enter__(self) -> Self:
        """Begin to listen."""
        gc.callbacks.append(self._ran)
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        gc.callbacks.remove(self._ran)

    def _ran(self, phase: str, _: object) -> None:
        if phase == "start":
            self._since = self._clock()
        else:
            self.took_ns += self._clock() - self._since


@dataclass(slots=True)
class Memory:
    """Host memory of a block, in bytes, over what there was before it; 0 where ``tracemalloc`` does not listen."""

    most: int = 0
    kept: int = 0  # at its end


@contextmanager
def listening(frames: int = 1) -> Iterator[None]:
    """Have ``tracemalloc`` listen; it stays on where the project has switched it on."""
    begun = tracemalloc.is_tracing()
    if not begun:
        tracemalloc.start(frames)
    try:
        yield
    finally:
        if not begun:
            tracemalloc.stop()


@contextmanager
def memory() -> Iterator[Memory]:
    """Measure the memory of a block."""
    found = Memory()
    if not tracemalloc.is_tracing():
        yield found
        return
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    yield found
    now, peak = tracemalloc.get_traced_memory()
    found.most, found.kept = peak - before, now - before


def open_files() -> Counter[str]:
    """The files that this process has open, by name; none where the system does not tell."""
    found = Counter[str]()
    with suppress(OSError):
        for number in _OPEN.iterdir():
            with suppress(OSError):
                found[number.readlink().name] += 1
    return found


def _each(looks: Sequence[int]) -> int:
    """How many more there are after each step."""
    return max(0, (looks[-1] - looks[0]) // (len(looks) - 1))


def _grown(before: tracemalloc.Snapshot, after: tracemalloc.Snapshot) -> dict[str, int]:
    """Bytes that lines of the project have gained, in more blocks."""
    blocks, nbytes = Counter[str](), Counter[str]()
    for one in after.compare_to(before, "traceback"):
        line = _line_of(one.traceback)
        blocks[line] += one.count_diff
        nbytes[line] += one.size_diff
    return {line: nbytes[line] for line in nbytes if line and blocks[line] > 0 and nbytes[line] > 0}


def _line_of(traceback: tracemalloc.Traceback) -> str:
    """The innermost line of the project that a block comes from; empty if it comes from jaxgate, or none is known."""
    for frame in reversed(traceback):
        if is_own_file(frame.filename):
            return ""
        if is_project_file(frame.filename):
            return f"{short_path(frame.filename)}:{frame.lineno}"
    return ""
