"""Energy of the calls of a subject, where its devices have a counter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxgate.model import EnergyRun, NoEnergy
from jaxgate.observe.arguments import ALONE
from jaxgate.observe.energy import Device, EnergyMeter, calls_of_burst, take_energy
from jaxgate.observe.errors import describe
from jaxgate.observe.execute.first_steps import Stepped
from jaxgate.observe.execute.samples import Sampled, calls_apart, calls_in_a_row
from jaxgate.observe.execute.subjects import Subject
from jaxgate.observe.tools import Tools


@dataclass(frozen=True, slots=True)
class Metered:
    """What is known of the energy of a subject.

    Attributes:
        energy: What was counted, or why nothing was; ``None`` where nobody asked.
        meter: What counted; ``None`` where there is no counter.
    """

    energy: EnergyRun | NoEnergy | None = None
    meter: EnergyMeter | None = None


def measure_energy(
    subject: Subject, stepped: Stepped, sampled: Sampled, tools: Tools, *, devices: Sequence[Device], apart: bool
) -> Metered:
    """Count the energy of calls, made as its samples were, where a counter is there; at no cost where none is.

    Args:
        subject: The subject, warm.
        stepped: Its steps, which threaded its state.
        sampled: Its samples: they say how long a call takes, and what it means.
        tools: The meters of this machine.
        devices: Where it runs.
        apart: ``next_args`` does more than moving arrays, so that each call is waited for alone.
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

    try:
        taken = take_energy(meter, [burst], [single_ns])
    except Exception as error:  # noqa: BLE001 - energy fails no case; its own calls were made before
        taken = NoEnergy(why=f"calls made for it failed: {describe(error)}", counter=meter.counter.name)
    return Metered(energy=taken if isinstance(taken, NoEnergy) else taken[0], meter=meter)
