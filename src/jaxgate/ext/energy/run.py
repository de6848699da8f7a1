"""Energy of the calls of a subject, or of both sides of a duel: idle power first, then the run in halves.

A counter moves in steps, of 1 ms to 100 ms; how long it stands still is measured while nothing runs. A run is as long as the
steps need it to be, and no longer than two seconds; what it cannot resolve then is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from jaxgate.ext.energy.counters import EnergyMeter
from jaxgate.ext.energy.model import Counted, CounterError, EnergyHalf, EnergyRun, NoEnergy
from jaxgate.model.duel import Duel
from jaxgate.observe.arguments.lockstep import ALONE
from jaxgate.observe.duel.duel import Side
from jaxgate.observe.errors import describe
from jaxgate.observe.execute.samples import Sampled, calls_apart, calls_in_a_row
from jaxgate.observe.execute.steps import Stepped
from jaxgate.observe.execute.subjects import Subject
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import uncollected

if TYPE_CHECKING:
    import jax

POLL_S = 0.005
"""Between two readings while nothing runs: more of them would be work."""
IDLE_NS = 250_000_000
MAX_IDLE_NS = 1_000_000_000
HALF_NS = 500_000_000
MAX_HALF_NS = 1_000_000_000
MIN_MOVES = 5
"""Steps of the counter in the idle time and in each half of a run."""
BURST_NS = 20_000_000
"""Calls between two readings. With a counter that moves every 100 ms it is what a half is known to."""
MAX_STEP = 10
"""Times the usual power that one step of a counter may show: one that jumps, or a power that no single number describes."""

MAX_CALLS = 20_000
"""Calls of a burst: as many of 1 µs."""

Burst = Callable[[], tuple[int, int]]
"""Makes some calls and waits for them; gives how many, and the nanoseconds that they took."""


def calls_of_burst(call_ns: float, *, consumed: bool) -> int:
    """Calls between two readings; one where a call consumes arguments that none gives back."""
    return 1 if consumed else min(MAX_CALLS, math.ceil(BURST_NS / call_ns))


def take_energy(meter: EnergyMeter, bursts: Sequence[Burst], calls_ns: Sequence[float]) -> list[EnergyRun] | NoEnergy:
    """Measure the energy of one side, or of two in the order ABBA: a run each, after one idle time for all."""
    if max(calls_ns) > MAX_HALF_NS:
        most = f"at most {MAX_HALF_NS / 1e9:.0f} s may be"
        return NoEnergy(why=f"a call takes {max(calls_ns) / 1e9:.1f} s, {most}", counter=meter.counter.name)
    order = (0, 0) if len(bursts) == 1 else (0, 1, 1, 0)
    halves: list[list[EnergyHalf]] = [[] for _ in bursts]
    try:
        others = meter.counter.watch_others()
        with uncollected():
            idle, stands_ns = _wait(meter)
            for side in order:
                halves[side].append(_run(meter, bursts[side], stands_ns))
        if shared := others():
            return NoEnergy(why=shared, counter=meter.counter.name)
    except CounterError as error:
        return NoEnergy(why=str(error), counter=meter.counter.name)
    except Exception as error:  # noqa: BLE001 - energy fails no case; its own calls, and its duel, were made before
        return NoEnergy(why=f"calls made for it failed: {describe(error)}", counter=meter.counter.name)
    return [EnergyRun(counter=meter.counter.name, idle=idle, halves=tuple(each)) for each in halves]


class _Readings:
    """Readings of all devices of a counter, each held against the one before it."""

    def __init__(self, meter: EnergyMeter) -> None:
        self._meter = meter
        self._last = meter.counter.read_uj()
        self.times_ns = [meter.clock()]
        self.reading_ns = 0  # what taking them took, but for the first
        self.totals_uj: list[list[int]] = [[0] for _ in self._last]

    @property
    def passed_ns(self) -> int:
        """Time since the first reading."""
        return self.times_ns[-1] - self.times_ns[0]

    def read(self) -> None:
        """Read the counter.

        Raises:
            CounterError: If a counter went backwards, and did not only begin again where it does.
        """
        counter, begin = self._meter.counter, self._meter.clock()
        now = counter.read_uj()
        self.times_ns.append(self._meter.clock())
        self.reading_ns += self.times_ns[-1] - begin
        for totals, before, after, most in zip(self.totals_uj, self._last, now, counter.ranges_uj, strict=True):
            more = after - before
            if more < 0 and most is not None and more + most < most / 2:
                more += most
            if more < 0:
                raise CounterError(f"the counter went backwards, from {before} to {after} µJ")
            totals.append(totals[-1] + more)
        self._last = now

    def moves(self, device: int) -> list[int]:
        """Which readings of a device were more than the ones before them."""
        return [number for number, (a, b) in enumerate(pairwise(self.totals_uj[device]), 1) if b > a]

    def stands_ns(self, device: int) -> int:
        """The longest that a counter can have stood still: from before one step to the next, or to the end."""
        moves = self.moves(device)
        ends = [*(self.times_ns[later] for later in moves), self.times_ns[-1]]
        starts = [self.times_ns[0], *(self.times_ns[number - 1] for number in moves)]
        return max(end - start for start, end in zip(starts, ends, strict=True))

    def stood_ns(self, device: int) -> int:
        """The longest that a counter stood still: its readings were equal."""
        starts = [0, *self.moves(device)]
        ends = [*(number - 1 for number in starts[1:]), len(self.times_ns) - 1]
        return max(self.times_ns[end] - self.times_ns[start] for start, end in zip(starts, ends, strict=True))

    def counted(self, device: int, stands_ns: int) -> Counted:
        """What a device used from the first to the last reading, or from its first to its last step: as is surer.

        Raises:
            CounterError: If a step was too large for the others.
        """
        times, totals, moves = self.times_ns, self.totals_uj[device], self.moves(device)
        self._refuse_jumps(device, moves)
        found = [Counted(uj=totals[-1], ns=self.passed_ns, off_ns=stands_ns)]
        if len(moves) > 1:
            first, last = moves[0], moves[-1]
            gap_ns = max(times[first] - times[first - 1], times[last] - times[last - 1])
            between = totals[last] - totals[first]
            found.append(Counted(uj=between, ns=times[last] - times[first], off_ns=min(gap_ns, stands_ns)))
        return min(found, key=lambda one: one.off_ns / one.ns)

    def _refuse_jumps(self, device: int, moves: Sequence[int]) -> None:
        times, totals = self.times_ns, self.totals_uj[device]
        steps = [(totals[b] - totals[a], times[b] - times[a]) for a, b in pairwise(moves)]
        usual = median(uj / ns for uj, ns in steps) if steps else 0.0
        for uj, ns in steps:
            if uj / ns > MAX_STEP * usual:
                seen = f"{uj / 1e6:.4g} J in {ns / 1e6:.3g} ms"
                raise CounterError(f"the counter jumped: {seen}, where {usual * 1e3:.4g} W are usual")


def _wait(meter: EnergyMeter) -> tuple[tuple[Counted, ...], int]:
    """Count while nothing runs; also the longest that a counter stands still.

    Raises:
        CounterError: If one stands still too long for a run of two seconds.
    """
    readings = _Readings(meter)
    devices = range(len(readings.totals_uj))
    while True:
        meter.wait(POLL_S)
        readings.read()
        fewest = min(len(readings.moves(device)) for device in devices)
        if readings.passed_ns >= IDLE_NS and fewest >= MIN_MOVES:
            break
        if readings.passed_ns >= MAX_IDLE_NS:
            times = "not move" if fewest == 0 else f"move {fewest} times only"
            raise CounterError(f"the counter did {times} in {readings.passed_ns / 1e9:.1f} s while nothing ran")
    stands_ns = max(map(readings.stands_ns, devices))
    return tuple(readings.counted(device, stands_ns) for device in devices), stands_ns


def _run(meter: EnergyMeter, burst: Burst, stands_ns: int) -> EnergyHalf:
    """Half of a run: bursts until it is long enough for a counter that stands still for so long."""
    readings = _Readings(meter)
    devices = range(len(readings.totals_uj))
    long_enough_ns = min(MAX_HALF_NS, max(HALF_NS, MIN_MOVES * stands_ns))
    calls = work_ns = 0
    while readings.passed_ns < long_enough_ns:
        more, took_ns = burst()
        calls, work_ns = calls + more, work_ns + took_ns
        readings.read()
    stands_ns = max(stands_ns, *map(readings.stood_ns, devices))
    counted = tuple(readings.counted(device, stands_ns) for device in devices)
    other_ns = max(0, readings.passed_ns - work_ns - readings.reading_ns)
    return EnergyHalf(counted=counted, run_ns=readings.passed_ns, other_ns=other_ns, calls=calls)


@dataclass(frozen=True, slots=True)
class Metered:
    """What is known of the energy of a subject."""

    energy: EnergyRun | NoEnergy | None = None  # what was counted, or why nothing was; `None` where nobody asked
    meter: EnergyMeter | None = None  # what counted; `None` where there is no counter


def measure_energy(
    subject: Subject, stepped: Stepped, sampled: Sampled, tools: Tools, *, devices: Sequence[jax.Device], apart: bool
) -> Metered:
    """Count the energy of calls, made as its samples were, where a counter is there; at no cost where none is.

    The samples say how long a call takes. With ``apart`` each call is waited for alone: ``next_args`` does more than moving
    arrays.
    """
    if tools.meters is None or not tools.sampling or tools.together is not ALONE:
        return Metered()
    meter = tools.meters.of(devices)
    if isinstance(meter, NoEnergy):
        return Metered(energy=meter)
    if sampled.traces or sampled.compiles or sampled.lowerings:
        why = "its calls trace or compile"
        return Metered(energy=NoEnergy(why=why, counter=meter.counter.name), meter=meter)
    samples, next_args = sampled.samples, stepped.next_args
    single_ns = max(1.0, samples.run_ns)
    calls = calls_of_burst(single_ns, consumed=subject.consumes and next_args is None)
    in_turn = calls_apart if apart or samples.contract == "latency" else calls_in_a_row

    def burst() -> tuple[int, int]:
        return calls, in_turn(subject, subject.fresh(), next_args, calls=calls, clock=meter.clock)

    taken = take_energy(meter, [burst], [single_ns])
    return Metered(energy=taken if isinstance(taken, NoEnergy) else taken[0], meter=meter)


BothEnergies = tuple[EnergyRun, EnergyRun] | NoEnergy


def duel_energy(meter: EnergyMeter | None, sides: tuple[Side, Side], duel: Duel) -> BothEnergies | None:
    """Count the energy of both sides in turn, one idle time before them; ``None`` where there is no counter."""
    if meter is None:
        return None
    calls_ns = [max(1.0, duel.call_ns(times)) for times in (duel.now_ns, duel.baseline_ns)]

    def burst(side: Side, call_ns: float) -> tuple[int, int]:
        calls = calls_of_burst(call_ns, consumed=side.consumed)
        return calls, side.burst(calls, meter.clock)

    bursts = [partial(burst, side, call_ns) for side, call_ns in zip(sides, calls_ns, strict=True)]
    taken = take_energy(meter, bursts, calls_ns)
    return taken if isinstance(taken, NoEnergy) else (taken[0], taken[1])
