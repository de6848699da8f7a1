"""The least time that each resource of a chip needs for a program, and scaling efficiency: only shown, duels gate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from jaxgate.model.chips import RATES, Rates, peak_flops
from jaxgate.model.machine import HardwareKey
from jaxgate.model.outcome import Point, Scaling
from jaxgate.model.roofline import Demand, Resource, Roofline
from jaxgate.model.verdict import Verdict


def roofline(demand: Demand | None, hardware: HardwareKey) -> Roofline | None:
    """The roofline of a program on a target; ``None`` where nothing is known of it, or of the chip."""
    rates = RATES.get(hardware.device_kind.partition(":")[0]) if hardware.target else None
    return None if demand is None or rates is None else least_times(demand, rates)


def least_times(demand: Demand, rates: Rates) -> Roofline:
    """What each resource would need at least, if it did nothing but this, at its peak.

    Where the optimised program does not show all products, those that JAX traced count, divided among the devices and
    at the rate of their fastest type, if that is more.
    """
    unknown = dict(demand.unknown)
    compute = 0.0
    for name, flops in demand.flops.items():
        peak = peak_flops(rates.kind, {name})
        if peak is None:
            unknown.setdefault("compute", f"how fast a {rates.kind} multiplies {name} is not known")
        else:
            compute += flops / peak
    if "compute" in unknown:
        compute = max(compute, _traced(demand, rates, demand.traced_types))
    times: dict[Resource, float] = {
        "compute": compute * 1e9,
        "memory": demand.memory_bytes / rates.memory * 1e9,
        "communication": demand.sent_bytes / rates.links * 1e9,
    }
    return Roofline(times_ns=times, unknown=unknown)


def _traced(demand: Demand, rates: Rates, types: Collection[str]) -> float:
    """Seconds for the products that JAX traced."""
    peaks = [peak_flops(rates.kind, {name}) for name in types]
    known = [peak for peak in peaks if peak is not None]
    return demand.traced_flops / max(known) if known and len(known) == len(peaks) else 0.0


def scaling(verdicts: Iterable[Verdict]) -> tuple[Scaling, ...]:
    """Compare the rates of cases that share a series, on devices of the same kind.

    The efficiency of strong scaling (the same work) and of weak scaling (so much for each device) is the same quotient.
    Virtual CPU devices share their cores and show nothing: they are left out.
    """
    rates: defaultdict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for verdict in verdicts:
        amount, at, run_ns = verdict.cost.amount, verdict.hardware, verdict.cost.run_ns
        if amount is None or not amount.series or at is None or at.platform == "cpu" or not run_ns or run_ns <= 0:
            continue
        rates[amount.series, amount.unit, at.device_kind][at.devices] = amount.count * 1e9 / run_ns
    return tuple(
        Scaling(series=series, unit=unit, points=_points(found))
        for (series, unit, _), found in sorted(rates.items())
        if len(found) > 1
    )


def _points(rates: dict[int, float]) -> tuple[Point, ...]:
    fewest = min(rates)
    alone = rates[fewest] / fewest
    return tuple(
        Point(devices=devices, per_second=rate, efficiency=rate / devices / alone)
        for devices, rate in sorted(rates.items())
    )
