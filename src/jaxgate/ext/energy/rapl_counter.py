"""The energy of processors by their own counters (RAPL), where the kernel offers them: Intel's, and AMD's under the same name.

``/sys/class/powercap/intel-rapl:N`` is a package: cores, caches, memory controller. Memory has a counter of its own on some
machines, which is left out, as the others have none. ``psys`` is the whole board, of which packages are parts: left out, too.
Kernel documentation: ``power/powercap/powercap.rst``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxgate.ext.energy.model import CounterError
from jaxgate.observe.machine.load import Ticks, read_ticks

NAME = "RAPL"
POWERCAP = Path("/sys/class/powercap")
MAX_OTHERS = 0.2
"""Cores that others may use meanwhile, and as a share of what this process uses: ``MAX_OTHERS_SHARE``. Chosen, not measured."""
MAX_OTHERS_SHARE = 0.1


def open_rapl(powercap: Path = POWERCAP) -> RaplCounter:
    """Find the packages of this machine, and read each once.

    Raises:
        CounterError: If there is none, or one may not be read.
    """
    zones = [zone for zone in sorted(powercap.glob("intel-rapl:*")) if zone.name.count(":") == 1]
    packages = [zone for zone in zones if _text(zone / "name").startswith("package")]
    if not packages:
        raise CounterError(f"no counter of energy: {powercap} shows no package of a processor")
    counter = RaplCounter(packages, tuple(_range(zone) for zone in packages))
    counter.read_uj()
    return counter


class RaplCounter:
    """The counters of the packages of this machine, which everything that runs on it shares.

    ``ranges_uj`` says where each begins again, ``own_ns`` what all threads of this process have run.
    """

    name = NAME

    def __init__(
        self,
        packages: Sequence[Path],
        ranges_uj: tuple[int | None, ...],
        *,
        ticks: Callable[[], Ticks | None] = read_ticks,
        own_ns: Callable[[], int] = time.process_time_ns,
        clock: Callable[[], int] = time.perf_counter_ns,
        tick_hz: int | None = None,
    ) -> None:
        self._packages, self.ranges_uj = tuple(packages), ranges_uj
        self._ticks, self._own_ns, self._clock = ticks, own_ns, clock
        self._tick_hz = os.sysconf("SC_CLK_TCK") if tick_hz is None else tick_hz

    def read_uj(self) -> tuple[int, ...]:
        """Microjoules of each package.

        Raises:
            CounterError: If one cannot be read.
        """
        return tuple(_number(package / "energy_uj") for package in self._packages)

    def watch_others(self) -> Callable[[], str]:
        """Compare what the processors do from now on with what this process does.

        Raises:
            CounterError: If the system does not say.
        """
        before, own, begin = self._ticks(), self._own_ns(), self._clock()
        if before is None:
            raise CounterError("who else uses the processors cannot be read")

        def others() -> str:
            after, passed = self._ticks(), max(1, self._clock() - begin)
            if after is None:
                return "who else uses the processors cannot be read"
            ours = (self._own_ns() - own) / passed
            theirs = (after.busy - before.busy) / self._tick_hz * 1e9 / passed - ours
            if theirs <= max(MAX_OTHERS, MAX_OTHERS_SHARE * ours):
                return ""
            return f"other processes used {theirs:.1f} cores meanwhile, and this one {ours:.1f}"

        return others


def _range(package: Path) -> int | None:
    """Where a counter begins again; ``None`` where the kernel does not say."""
    try:
        return _number(package / "max_energy_range_uj")
    except CounterError:
        return None


def _number(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except PermissionError:
        raise CounterError(f"no permission to read {file} (since Linux 5.10 only root has it)") from None
    except (OSError, ValueError) as error:
        raise CounterError(f"{file} cannot be read: {error}") from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
