"""Whether this machine is quiet enough to store times, and how fast it runs Python right now.

The limits are choices, not measurements: a third of the 3 % margin for what the hypervisor took away, and half a
core of other work, or a tenth of them all.

Phases (tracing, compiling) are compared with stored times, which may come from a quicker or less busy machine. The
yardstick, a fixed piece of work, measures that difference. It uses no JAX, so a slower JAX changes the phases and not
the yardstick.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from jaxgate.observe.machine.nvml import GpuState, known, read_gpus

WINDOW_S = 1.0
SPIN_S = 0.05
MAX_BUSY_CORES = 0.5
MAX_BUSY_SHARE = 0.1
MAX_STEAL = 0.01
MIN_CLOCK = 0.8
"""Least share of the clock that the system allows; one busy core of an unthrottled processor reaches it."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """The counters of ``/proc/stat`` since boot, all processors together."""

    busy: int
    stolen: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """What a look at the machine saw; ``None`` is unknown, or was not asked."""

    cores: int | None  # processors of the machine
    load: float | None  # processes that wanted one over the last minute
    busy_cores: float | None  # processors at work during the window
    steal: float | None  # share of the time that the hypervisor gave to others
    clock: float | None  # fastest processor while one of them spins, as a share of what the system allows
    gpus: tuple[GpuState, ...] | None = None  # each GPU that may be used; `None` on other platforms
    gpu_problem: str = ""  # why the GPUs could not be read
    load_asked: bool = True

    @property
    def objections(self) -> tuple[str, ...]:
        """What speaks against storing times; empty on a quiet machine."""
        found = []
        if self.load is None and self.busy_cores is None and self.steal is None:
            found.append("nothing can be read of the processors")
        most = max(MAX_BUSY_CORES, MAX_BUSY_SHARE * (self.cores or 0))
        if self.load is not None and self.load > most:
            found.append(f"load {self.load:.1f}, at most {most:.1f} may be")
        if self.busy_cores is not None and self.busy_cores > most:
            found.append(f"{self.busy_cores:.1f} cores at work, at most {most:.1f} may be")
        if self.steal is not None and self.steal > MAX_STEAL:
            found.append(f"steal {self.steal:.1%}, at most {MAX_STEAL:.0%} may be")
        if self.clock is not None and self.clock < MIN_CLOCK:
            found.append(f"clock at {self.clock:.0%} of its maximum, at least {MIN_CLOCK:.0%} must be")
        if self.gpu_problem:
            found.append(self.gpu_problem)
        for number, gpu in enumerate(self.gpus or ()):
            found += [f"GPU {number}: {objection}" for objection in gpu.objections]
        return tuple(found)

    def __str__(self) -> str:
        """One line: everything that was seen, and what is unknown."""
        of = f" of {'?' if self.cores is None else self.cores} cores"
        parts = [f"load {known(self.load, '.1f')}{of}"] if self.load_asked else []
        parts.append(f"{known(self.busy_cores, '.1f')}{'' if self.load_asked else of} at work")
        parts.append(f"steal {known(self.steal, '.1%')}")
        parts.append(f"clock {known(self.clock, '.0%')}")
        parts += [f"GPU {number} {gpu}" for number, gpu in enumerate(self.gpus or ())]
        parts += [self.gpu_problem] if self.gpu_problem else []
        return ", ".join(parts)


def read_ticks(proc: Path = Path("/proc")) -> Ticks | None:
    """Read the counters of all processors; ``None`` where the system does not report them."""
    try:
        first = (proc / "stat").read_text(errors="replace").split("\n", 1)[0].split()
        user, nice, system, idle, iowait, irq, softirq, stolen = (int(word) for word in first[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq
    return Ticks(busy, stolen, busy + idle + iowait + stolen)


def look(
    platform: str,
    *,
    after_work: bool = False,
    holds_device: bool = False,
    since: Ticks | None = None,
    proc: Path = Path("/proc"),
    system: Path = Path("/sys"),
    load: Callable[[], float | None] | None = None,
    cores: int | None = os.cpu_count(),
    wait: Callable[[], None] = lambda: time.sleep(WINDOW_S),
    spin: Callable[[], None] | None = None,
    environ: Mapping[str, str] = os.environ,
    gpus: Callable[..., tuple[GpuState, ...]] = read_gpus,
) -> MachineState:
    """Look at the machine, for about a second.

    ``after_work`` leaves out what looks back (load, utilisation): it would see our own work; ``holds_device`` leaves
    out who uses the device: we do. Steal is counted from ``since``; over the window by default. ``spin`` keeps one
    processor at work for a moment, so that it has a reason to be fast.
    """
    before = read_ticks(proc)
    wait()
    after = read_ticks(proc)
    (spin or _spin)()
    state: tuple[GpuState, ...] | None = None
    problem = ""
    if platform == "gpu":
        try:
            state = gpus(environ, used_by_us=holds_device, after_work=after_work)
        except Exception as error:  # noqa: BLE001 - whatever kept it from being read, it is not known to be quiet
            problem = f"the GPU cannot be read: {error}"
    share = _share(before, after)
    stolen = _share(since or before, after)
    return MachineState(
        cores=cores,
        load=None if after_work else (load or _load)(),
        busy_cores=None if share is None or cores is None else share[0] * cores,
        steal=None if stolen is None else stolen[1],
        clock=_clock(system),
        gpus=state,
        gpu_problem=problem,
        load_asked=not after_work,
    )


def _share(before: Ticks | None, after: Ticks | None) -> tuple[float, float] | None:
    """Shares of the time between two readings: at work, and stolen."""
    if before is None or after is None or after.total <= before.total:
        return None
    passed = after.total - before.total
    return (after.busy - before.busy) / passed, (after.stolen - before.stolen) / passed


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _spin() -> None:
    until = time.perf_counter() + SPIN_S
    while time.perf_counter() < until:
        pass


def _clock(system: Path) -> float | None:
    """The clock of the fastest processor, which just span, as a share of what its policy allows."""
    shares = []
    for policy in sorted((system / "devices/system/cpu").glob("cpu[0-9]*/cpufreq")):
        try:
            now, most = (int((policy / name).read_text()) for name in ("scaling_cur_freq", "scaling_max_freq"))
        except (OSError, ValueError):
            continue
        if most > 0:
            shares.append(now / most)
    return max(shares, default=None)


def memory_bytes(which: str, status: Path = Path("/proc/self/status")) -> int:
    """Memory of this process, in bytes.

    ``VmHWM`` is the most that it has held since it began its program; ``getrusage`` will not do: on Linux it remembers
    the process that this one was forked from. ``RssAnon`` is what it holds now and no file backs.

    Raises:
        OSError: If the system does not say it.
    """
    for line in status.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == which:
            return int(value.split()[0]) * 1024
    raise OSError(f"expected {which} in {status}, found none")


ROUNDS = 3
_ITEMS = 4_000
"""About 2 ms on a server core of 2024: long against the clock, short against a trace."""


def read_yardstick(clock: Callable[[], int]) -> int:
    """Median time of the fixed work, in nanoseconds."""
    return round(median(_times(clock, ROUNDS)))


def python_spread(clock: Callable[[], int], rounds: int = 30) -> float:
    """How steady this machine is: the 90th percentile of the fixed work's times over the least of them."""
    taken = sorted(_times(clock, rounds))
    return taken[-1 - rounds // 10] / taken[0]


def clock_step(clock: Callable[[], int], readings: int = 2_000) -> int:
    """The smallest step that a clock was seen to make, in its unit."""
    seen = sorted({clock() for _ in range(readings)})
    return min((later - earlier for earlier, later in pairwise(seen)), default=0)


def _times(clock: Callable[[], int], rounds: int) -> list[int]:
    taken = []
    for _ in range(rounds):
        begin = clock()
        _work()
        taken.append(clock() - begin)
    return taken


def _work() -> int:
    """Calls, dictionaries, tuples and strings, as tracing has them."""
    seen: dict[tuple[str, int], list[int]] = {}
    for item in range(_ITEMS):
        seen.setdefault((f"v{item % 61}", item % 7), []).append(item)
    return sum(len(items) for items in sorted(seen.values(), key=len))
