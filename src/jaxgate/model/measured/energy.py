"""Energy of a call: what the counters of its devices said, raw; what that comes to; or why it is not known."""

from __future__ import annotations

from dataclasses import dataclass

from jaxgate.model.workloads.computation import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEnergy:
    """Why the energy of a call is not known.

    Attributes:
        why: The reason, in words.
        counter: The counter that was there and could not answer; empty where there is none that may be read.
    """

    why: str
    counter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What the counter of one device counted between two readings.

    Attributes:
        uj: Microjoules.
        ns: Nanoseconds between the readings.
        off_ns: By how much the time that the microjoules are of may differ from that: a counter moves in steps.
    """

    uj: int
    ns: int
    off_ns: int

    @property
    def watts(self) -> float:
        """Mean power."""
        return self.uj / self.ns * 1000

    @property
    def off_watts(self) -> float:
        """By how much that power may be wrong."""
        return self.watts * self.off_ns / self.ns


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyHalf:
    """One half of a run of calls.

    Attributes:
        counted: What was counted meanwhile, device by device.
        run_ns: How long it took.
        other_ns: How much of that was neither calls nor reading the counter: copies of arguments, or what makes the next ones.
        calls: How many calls it had.
    """

    counted: tuple[Counted, ...]
    run_ns: int
    other_ns: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyRun:
    """A run of calls in two halves, and what the same devices drew before it while they waited.

    Attributes:
        counter: Who counted: ``NVML`` or ``RAPL``.
        idle: What was counted while nothing ran, device by device.
        halves: The run; of a duel the other side ran between them.
    """

    counter: str
    idle: tuple[Counted, ...]
    halves: tuple[EnergyHalf, ...]

    @property
    def idle_watts(self) -> float:
        """What all devices together drew while nothing ran."""
        return sum(one.watts for one in self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What one call draws beyond what its devices draw without it.

    Attributes:
        call_uj: Microjoules of one call, of all its devices together, without idle power.
        resolution: By how much that may be wrong, as a share of it.
        idle_watts: What the devices drew before the run, together; it was taken off.
        calls: Calls of the run.
        run_ns: How long it took.
        devices: Counters that were added up.
        counter: Who counted.
    """

    call_uj: float
    resolution: float
    idle_watts: float
    calls: int
    run_ns: int
    devices: int
    counter: str

    def per_joule(self, amount: Amount) -> float:
        """What calls get done for a joule, in units of the amount."""
        return amount.count * 1e6 / self.call_uj


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyRatio:
    """The energy of both sides of a duel, each with the same idle power taken off."""

    now: Energy
    baseline: Energy

    @property
    def ratio(self) -> float:
        """Today's to the baseline's."""
        return self.now.call_uj / self.baseline.call_uj

    @property
    def resolution(self) -> float:
        """By how much the ratio may be wrong, as a share of it, where both sides are wrong in opposite directions."""
        return (1 + self.now.resolution) / (1 - self.baseline.resolution) - 1

    @property
    def differs(self) -> bool:
        """Whether the sides differ by more than that, either way."""
        return max(self.ratio, 1 / self.ratio) > 1 + self.resolution
