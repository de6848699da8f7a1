"""Energy of both sides of a duel, after it, where the devices have a counter."""

from __future__ import annotations

from functools import partial

from jaxgate.model import Duel, EnergyRun, NoEnergy
from jaxgate.observe.duel import Side
from jaxgate.observe.energy import EnergyMeter, calls_of_burst, take_energy
from jaxgate.observe.errors import describe

BothEnergies = tuple[EnergyRun, EnergyRun] | NoEnergy


def duel_energy(meter: EnergyMeter | None, sides: tuple[Side, Side], duel: Duel) -> BothEnergies | None:
    """Count the energy of both sides in turn, one idle time before them; ``None`` where there is no counter.

    Args:
        meter: Counts for the devices of the case.
        sides: Today's program and the baseline's, warm.
        duel: Their duel: it says how long a call of each takes.
    """
    if meter is None:
        return None
    calls_ns = [max(1.0, duel.call_ns(times)) for times in (duel.now_ns, duel.baseline_ns)]
    bursts = [partial(_burst, side, call_ns, meter) for side, call_ns in zip(sides, calls_ns, strict=True)]
    try:
        taken = take_energy(meter, bursts, calls_ns)
    except Exception as error:  # noqa: BLE001 - the duel is over, and its outcome stands
        return NoEnergy(why=f"calls made for it failed: {describe(error)}", counter=meter.counter.name)
    if isinstance(taken, NoEnergy):
        return taken
    now, baseline = taken
    return now, baseline


def _burst(side: Side, call_ns: float, meter: EnergyMeter) -> tuple[int, int]:
    calls = calls_of_burst(call_ns, consumed=side.consumed)
    return calls, side.burst(calls, meter.clock)
