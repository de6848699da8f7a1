"""The clocks of an observation: the wall, what runs, and what waits for something else than a core."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Clock = Callable[[], int]
_SCHEDULED = Path("/proc/thread-self/schedstat")
"""Where Linux says what the calling thread has run, and how long it has waited for a core, in nanoseconds."""
_TASKS = Path("/proc/self/task")
"""A folder for each thread of this process, with the same figures."""


def queued_ns(statistics: Path = _SCHEDULED) -> int:
    """How long this thread has waited for a core; 0 where the system does not report it."""
    try:
        return int(statistics.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def kept_ns(tasks: Path = _TASKS) -> int:
    """How long all threads of this process have waited for a core, together; 0 where the system does not report it."""
    try:
        return sum(queued_ns(task / "schedstat") for task in tasks.iterdir())
    except OSError:
        return 0


def asleep_ns() -> int:
    """A clock that runs while this thread neither runs nor waits for a core: it waits for something else."""
    return time.perf_counter_ns() - time.thread_time_ns() - queued_ns()


@contextmanager
def uncollected() -> Iterator[None]:
    """Put off collections of garbage while something is timed or counted.

    When one comes is decided by all that the process did before, and a full one takes 0.1 to 0.3 s in a process that has
    imported JAX: more than most programs take to trace.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The clocks of an observation, in nanoseconds: the first times calls, the others what a busy machine must not slow.

    Beside eight busy processes on two cores the first one more than doubled tracing and quadrupled compiling; the
    others moved by less than half.
    """

    wall: Clock = time.perf_counter_ns  # monotonic
    thread: Clock = time.thread_time_ns  # what this thread has run: all of tracing and lowering is Python in it
    # what all threads of this process have run: a compile on CPU takes no longer than that if it is alone
    process: Clock = time.process_time_ns
    asleep: Clock = asleep_ns  # what this thread has waited for a disk, another process, another thread or a device
    kept: Clock = kept_ns  # what all threads of this process have waited for a core, together


@dataclass(slots=True)
class WallTime:
    """Times calls by one clock."""

    clock: Clock
    _since: int = 0

    def start(self) -> None:
        """Begin to time."""
        self._since = self.clock()

    def read(self) -> int:
        """Nanoseconds since the start."""
        return self.clock() - self._since


@dataclass(slots=True)
class OwnTime:
    """Times calls whole, without what kept them from a core: threads of other processes are not their doing.

    Threads that wait side by side are subtracted one after the other, so that what is left may be less than it took;
    it is never less than what the threads ran, spread over the cores that they may use.
    """

    clocks: Clocks
    cores: int
    _since: tuple[int, int, int] = (0, 0, 0)

    def start(self) -> None:
        """Begin to time."""
        self._since = self.clocks.kept(), self.clocks.process(), self.clocks.wall()

    def read(self) -> int:
        """Nanoseconds since the start."""
        took = self.clocks.wall() - self._since[2]
        ran, kept = self.clocks.process() - self._since[1], self.clocks.kept() - self._since[0]
        return min(took, max(took - max(0, kept), ran // self.cores))


CLOCKS = Clocks()
