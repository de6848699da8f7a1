"""The figures of a case, put together from its measurement, its baseline and its duel; nothing is judged by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.duel import Duel
from jaxgate.model.measurement import MeasuredProgram, Measurement
from jaxgate.model.numbers import ARRIVAL_FACTS, Facts, Phases, Samples
from jaxgate.model.verdict import BaselineName, CallTimes, Figures

SUMS = ("state_bytes", "peak_bytes")


def figures_of(now: Measurement, stored: StoredBaseline | None, duel: Duel | None = None) -> Figures:
    """Everything that is known of a case in numbers."""
    baseline = None if stored is None else stored.baseline
    reference = now.reference
    return Figures(
        now=figures_of_baseline(now),
        stored={} if baseline is None else figures_of_baseline(baseline),
        reference={} if reference is None else _compiled(reference.facts, reference.phases),
        environment=now.environment,
        program=now.fingerprints.program,
        baseline=None
        if baseline is None
        else BaselineName(
            program=baseline.fingerprints.program,
            folder=baseline.folder,
            commit=baseline.provenance.commit,
            date=baseline.provenance.date,
        ),
        times=_times(now.samples, None if baseline is None else baseline.samples, duel),
        growth=now.growth,
        stored_growth={} if baseline is None else baseline.growth,
    )


def figures_of_baseline(one: MeasuredProgram) -> dict[str, float]:
    """What a measurement or a baseline has in numbers, by name."""
    found = _compiled(one.facts, one.phases) | {name: getattr(one, name) for name in ARRIVAL_FACTS}
    if one.samples is not None:
        found |= {"run_ns": one.samples.run_ns, "p99_ns": one.samples.percentile_ns(99)}
    return {name: value for name, value in found.items() if value is not None}


def _compiled(facts: Facts, phases: Phases) -> dict[str, Any]:
    found = {name: getattr(facts, name) for name in (*(field.name for field in fields(Facts)), *SUMS)}
    found |= {field.name: getattr(phases, field.name) for field in fields(Phases)}
    return {name: value for name, value in found.items() if value is not None}


def _times(now: Samples | None, stored: Samples | None, duel: Duel | None) -> CallTimes:
    if duel is not None:
        return CallTimes(
            now=_halves(duel.now_ns, duel.calls_per_burst),
            stored=_halves(duel.baseline_ns, duel.calls_per_burst),
            in_turn=True,
        )
    return CallTimes(now=_bursts(now), stored=_bursts(stored))


def _halves(side: Sequence[Sequence[int]], calls: int) -> tuple[float, ...]:
    """A half-round counts with the least of its bursts, as in the decision."""
    return tuple(min(bursts) / calls for bursts in side)


def _bursts(samples: Samples | None) -> tuple[float, ...]:
    return () if samples is None else tuple(burst / samples.calls_per_burst for burst in samples.bursts_ns)
