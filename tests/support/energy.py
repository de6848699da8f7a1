"""A world whose devices draw power while its clock goes on, and counters of it that move in steps, as real ones do."""

from types import SimpleNamespace

from jaxgate.ext.energy.counters import EnergyMeter, EnergyMeters
from jaxgate.ext.energy.model import CounterError

CPU = SimpleNamespace(platform="cpu", device_kind="cpu", process_index=0, local_hardware_id=0)
MS = 1_000_000


class World:
    """Devices, their counters and the clock. Time passes only where somebody waits, works, or reads a counter.

    Args:
        idle: Watts of each device while nothing runs.
        every_ms: A counter moves so often.
        ranges_uj: Where each counter begins again.
        begin_uj: What the counters say at first.
        read_ms: What it takes to read them.
    """

    name = "FAKE"

    def __init__(self, idle=(20.0,), *, every_ms=1.0, ranges_uj=None, begin_uj=0, read_ms=0.01):
        self.idle, self.ranges_uj = tuple(idle), ranges_uj or (None,) * len(idle)
        self.now_ns, self._every_ns, self._read_ns = 0, round(every_ms * MS), round(read_ms * MS)
        self._drawn = [float(begin_uj)] * len(idle)
        self._shown = list(self._drawn)
        self.others, self.others_at_end = "", ""
        self.spoil = lambda values: values
        self.reads = 0

    def pass_by(self, ns, watts):
        """Let time pass at a power of each device; the counters move at whole steps of the clock."""
        end = self.now_ns + round(ns)
        while self.now_ns < end:
            step = min(end, (self.now_ns // self._every_ns + 1) * self._every_ns)
            self._drawn = [drawn + (step - self.now_ns) * w / 1000 for drawn, w in zip(self._drawn, watts, strict=True)]
            self.now_ns = step
            if step % self._every_ns == 0:
                self._shown = list(self._drawn)

    def clock(self):
        """Nanoseconds."""
        return self.now_ns

    def wait(self, seconds):
        """Nothing runs."""
        self.pass_by(seconds * 1e9, self.idle)

    def read_uj(self):
        """What the counters show; ``spoil`` changes it."""
        self.reads += 1
        self.pass_by(self._read_ns, self.idle)
        whole = (int(shown) for shown in self._shown)
        shown = tuple(u if most is None else u % most for u, most in zip(whole, self.ranges_uj, strict=True))
        return self.spoil(shown)

    def watch_others(self):
        """Who else is there, at first and at the end."""
        if self.others:
            raise CounterError(self.others)
        return lambda: self.others_at_end

    @property
    def meter(self):
        """What measures here."""
        return EnergyMeter(self, self.clock, self.wait)

    @property
    def meters(self):
        """The counters of a machine with these devices, as its processors."""
        return EnergyMeters(open_processors=lambda: self, clock=self.clock, wait=self.wait)

    def burst(self, call_ms, watts, *, calls=10, copies_ms=0.0):
        """Calls that draw a power of each device, after copies that do not."""

        def make():
            self.pass_by(copies_ms * MS, self.idle)
            self.pass_by(calls * call_ms * MS, watts)
            return calls, calls * call_ms * MS

        return make


class WorkingWorld(World):
    """A world for real calls, which take no time in it: a burst takes 20 ms at 120 W, from its first to its last reading of the clock.

    Between two readings of the counter the clock is read at the end of the first one, at both ends of a burst, and before the
    second one; in the idle time there is no burst.
    """

    busy, _asked = 120.0, 0

    def clock(self):
        """Nanoseconds."""
        self._asked += 1
        if self._asked == 3:
            self.pass_by(20 * MS, [self.busy] * len(self.idle))
        return self.now_ns

    def read_uj(self):
        """What the counters show."""
        self._asked = 0
        return super().read_uj()


def no_meters():
    """The counters of a machine that has none."""

    def none():
        raise CounterError("no counter of energy")

    return EnergyMeters(open_processors=none, open_gpus=none)
