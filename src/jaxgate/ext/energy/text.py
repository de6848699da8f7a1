"""Energy as text: of a call, per unit of what it gets done, and of both sides of a duel; and the same for machines."""

from __future__ import annotations

from typing import Any

from jaxgate.ext.energy.model import Energy, EnergyRatio, NoEnergy
from jaxgate.model.verdict import Verdict
from jaxgate.report.units import show, show_amount_of, show_share


def call_energy(verdict: Verdict) -> str:
    """What stands beside the rate of a case: ``3.4 k samples/J``, ``31.2 mJ`` where it has no unit; empty if unknown."""
    found = verdict.cost.energy
    if not isinstance(found, Energy):
        return ""
    if verdict.cost.amount is None:
        return show("call_uj", found.call_uj)
    return f"{show_amount_of(found.per_joule(verdict.cost.amount), verdict.cost.amount.unit)}/J"


def whole_energy(found: Energy) -> str:
    """``31.2 mJ a call within 3 %, beyond 61.5 W idle (RAPL, 1,200 calls in 1.02 s)``; with the devices if they are several."""
    idle = f"beyond {_watts(found.idle_watts)} idle"
    devices = "" if found.devices == 1 else f" of {found.devices} devices"
    run = f"{found.calls:,} {'call' if found.calls == 1 else 'calls'} in {show('run_ns', found.run_ns)}"
    return f"{_within(found.call_uj, found.resolution)}, {idle} ({found.counter}{devices}, {run})"


def ratio_of_energy(found: EnergyRatio) -> str:
    """``energy 1.30 × within 4 %``."""
    return f"energy {found.ratio:.2f} × within {show_share(found.resolution)}"


def energy_row(found: EnergyRatio) -> str:
    """A row of a red text: ratio, both sides, idle power, and that it fails nothing."""
    now, before = (_within(side.call_uj, side.resolution) for side in (found.now, found.baseline))
    ratio = ratio_of_energy(found).removeprefix("energy ")
    return f"{ratio}; {now} against {before}, beyond {_watts(found.now.idle_watts)} idle, not gated"


def energy_details(verdict: Verdict) -> list[str]:
    """What ``-v`` adds; nothing where there is no counter."""
    found, duel, lines = verdict.cost.energy, verdict.cost.duel_energy, []
    if isinstance(found, Energy):
        lines.append(f"energy: {whole_energy(found)}")
    elif found is not None and found.counter:
        lines.append(f"energy: unknown, {found.why} ({found.counter})")
    if isinstance(duel, EnergyRatio):
        lines.append(f"energy beside the baseline's program: {energy_row(duel)}")
    elif duel is not None and duel.counter:
        lines.append(f"energy beside the baseline's program: unknown, {duel.why} ({duel.counter})")
    return lines


def energy_json(verdict: Verdict) -> dict[str, Any] | None:
    """The energy of a case for ``results.json``: numbers, or ``unknown`` alone; ``None`` where nobody asked for it."""
    found = verdict.cost.energy
    if found is None:
        return None
    if isinstance(found, NoEnergy):
        return {"unknown": found.why}
    amount = verdict.cost.amount
    return {
        "call_uj": found.call_uj,
        "per_joule": None if amount is None else found.per_joule(amount),
        "resolution": found.resolution,
        "idle_watts": found.idle_watts,
        "calls": found.calls,
        "run_ns": found.run_ns,
        "counter": found.counter,
        "duel": _duel_json(verdict.cost.duel_energy),
    }


def _duel_json(found: EnergyRatio | NoEnergy | None) -> dict[str, Any] | None:
    if found is None:
        return None
    if isinstance(found, NoEnergy):
        return {"unknown": found.why}
    return {
        "ratio": found.ratio,
        "resolution": found.resolution,
        "now_uj": found.now.call_uj,
        "baseline_uj": found.baseline.call_uj,
    }


def _within(call_uj: float, resolution: float) -> str:
    return f"{show('call_uj', call_uj)} a call within {show_share(resolution)}"


def _watts(power: float) -> str:
    return f"{power:.3g} W"
