"""The least time that each resource of a chip would need for a program: an estimate, and no verdict."""

from __future__ import annotations

from collections.abc import Collection

from jaxgate.model import RATES, Demand, HardwareKey, Rates, Resource, Roofline, peak_flops


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
