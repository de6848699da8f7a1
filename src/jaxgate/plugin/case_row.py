"""What pytest-benchmark's row says of a case: its verdict, facts, phases and throughput."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jaxgate.ext.energy.model import Energy
from jaxgate.model.chips import utilisation
from jaxgate.model.measurement import Measurement
from jaxgate.model.verdict import Verdict


def row_of(verdict: Verdict, measurement: Measurement) -> dict[str, Any]:
    """The row of a case: its verdict so far, with all facts and phases."""
    return {
        "case": verdict.case,
        "verdict": str(verdict.status),
        "hardware": measurement.hardware.slug,
        "program": measurement.fingerprints.program,
        "analytic_flops": measurement.analytic_flops,
        **_singles(measurement),
        **_rate(measurement),
        **_energy(verdict),
        "mfu": utilisation(measurement),
        **asdict(measurement.facts),
        **asdict(measurement.phases),
    }


def _singles(measurement: Measurement) -> dict[str, Any]:
    """What the row says of single calls, where there are any."""
    samples = measurement.samples
    if samples is None:
        return {}
    return {"contract": samples.contract, "p50_ns": samples.percentile_ns(50), "p99_ns": samples.percentile_ns(99)}


def _energy(verdict: Verdict) -> dict[str, Any]:
    """What the row says of energy, where it is known: of a call, per joule, and what it was measured by."""
    found = verdict.cost.energy
    if not isinstance(found, Energy):
        return {}
    rate = {} if verdict.cost.amount is None else {"per_joule": found.per_joule(verdict.cost.amount)}
    return {"call_uj": found.call_uj, "energy_resolution": found.resolution, "idle_watts": found.idle_watts, **rate}


def _rate(measurement: Measurement) -> dict[str, Any]:
    """What the row says of throughput, where the case says what a call gets done."""
    amount, samples = measurement.amount, measurement.samples
    if amount is None or samples is None or samples.run_ns <= 0:
        return {}
    per_second = amount.count * 1e9 / samples.run_ns
    bus = {} if amount.bus_factor is None else {"bus_per_second": per_second * amount.bus_factor}
    return {"unit": amount.unit, "per_second": per_second, **bus}
