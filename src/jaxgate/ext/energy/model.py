"""What the counters of devices said, raw, and what that comes to: the energy of a call, the ratio of a duel, or why neither is known.

Nothing here gates. Errors are added up as if all of them pointed one way: how they are distributed is not known of any counter.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxgate.model.computation import Amount


class CounterError(Exception):
    """A counter is not there, cannot be read, or says what cannot be; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEnergy:
    """Why the energy of a call is not known."""

    why: str  # the reason, in words
    counter: str = ""  # the counter that was there and could not answer; empty where there is none that may be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What the counter of one device counted between two readings."""

    uj: int  # microjoules
    ns: int  # nanoseconds between the readings
    off_ns: int  # by how much the time that the microjoules are of may differ from that: a counter moves in steps

    @property
    def watts(self) -> float:
        """Mean power."""
        return self.uj / self.ns * 1000

    @property
    def off_watts(self) -> float:
        """By how much the mean power may be wrong."""
        return self.watts * self.off_ns / self.ns


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyHalf:
    """One half of a run of calls."""

    counted: tuple[Counted, ...]  # what was counted meanwhile, device by device
    run_ns: int  # how long it took
    # how much of that was neither calls nor reading the counter: copies of arguments, or what makes the next ones
    other_ns: int
    calls: int  # how many calls it had


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyRun:
    """A run of calls in two halves, and what the same devices drew before it while they waited."""

    counter: str  # who counted: `NVML` or `RAPL`
    idle: tuple[Counted, ...]  # what was counted while nothing ran, device by device
    halves: tuple[EnergyHalf, ...]  # the run; of a duel the other side ran between them

    @property
    def idle_watts(self) -> float:
        """What all devices together drew while nothing ran."""
        return sum(one.watts for one in self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What one call draws beyond what its devices draw without it."""

    call_uj: float  # microjoules of one call, of all its devices together, without idle power
    resolution: float  # by how much that may be wrong, as a share of it
    idle_watts: float  # what the devices drew before the run, together; it was taken off
    calls: int  # calls of the run
    run_ns: int  # how long it took
    devices: int  # counters that were added up
    counter: str  # who counted

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


MAX_RESOLUTION = 0.1
"""A number that may be wrong by more is none: as much as a slow-down that a duel must be able to see."""
MAX_OTHER = 0.05
"""Share of a run that may be neither calls nor readings: what copies of arguments draw is counted with the calls."""


def energy_of(run: EnergyRun | NoEnergy | None) -> Energy | NoEnergy | None:
    """The energy of a call; ``None`` where nobody asked for it.

    Idle power is taken off; the resolution adds up what both counts may be wrong by, and half the difference of the halves.
    """
    if run is None or isinstance(run, NoEnergy):
        return run
    if why := _why_not(run):
        return NoEnergy(why=why, counter=run.counter)
    calls = sum(half.calls for half in run.halves)
    net_uj = sum(_net_uj(half, run) for half in run.halves)
    if net_uj <= 0:
        drawn = sum(one.watts for half in run.halves for one in half.counted) / len(run.halves)
        idle = f"the devices drew {run.idle_watts:.3g} W before the run, while nothing ran, and {drawn:.3g} W in it"
        return NoEnergy(why=idle, counter=run.counter)
    off_uj = sum(  # by how much the net energy may be wrong
        sum(one.off_watts for one in (*half.counted, *run.idle)) * half.run_ns / 1000 for half in run.halves
    )
    single = [_net_uj(half, run) / half.calls for half in run.halves]
    resolution = off_uj / net_uj + (max(single) - min(single)) / 2 / (net_uj / calls)
    if resolution > MAX_RESOLUTION:
        limit = f"at most {MAX_RESOLUTION:.0%} may be"
        why = f"the counter is too coarse for the run, or the power not steady: within {resolution:.0%}, {limit}"
        return NoEnergy(why=why, counter=run.counter)
    return Energy(
        call_uj=net_uj / calls,
        resolution=resolution,
        idle_watts=run.idle_watts,
        calls=calls,
        run_ns=sum(half.run_ns for half in run.halves),
        devices=len(run.idle),
        counter=run.counter,
    )


def compare_energy(runs: tuple[EnergyRun, EnergyRun] | NoEnergy | None) -> EnergyRatio | NoEnergy | None:
    """The energy of today's side beside the baseline's; known only where that of both is."""
    if runs is None or isinstance(runs, NoEnergy):
        return runs
    now, baseline = map(energy_of, runs)
    for role, side in (("today's program", now), ("the baseline's program", baseline)):
        if isinstance(side, NoEnergy):
            return NoEnergy(why=f"{role}: {side.why}", counter=side.counter)
    assert isinstance(now, Energy)
    assert isinstance(baseline, Energy)
    return EnergyRatio(now=now, baseline=baseline)


def _why_not(run: EnergyRun) -> str:
    """Why a run means nothing, before anything is computed from it; empty if it does."""
    if any(one.uj == 0 for half in run.halves for one in half.counted):
        return "a counter did not move while calls ran"
    share = sum(half.other_ns for half in run.halves) / sum(half.run_ns for half in run.halves)
    if share > MAX_OTHER:
        return f"{share:.0%} of the run were no calls, but copies of arguments or what makes the next ones"
    return ""


def _net_uj(half: EnergyHalf, run: EnergyRun) -> float:
    """What half of a run drew beyond idle power."""
    return (sum(one.watts for one in half.counted) - run.idle_watts) * half.run_ns / 1000
