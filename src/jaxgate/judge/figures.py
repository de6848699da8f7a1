"""The figures of a case, put together from its measurement, its baseline and its duel; nothing is judged by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.duel import Duel
from jaxgate.model.measurement import Measured, MeasuredProgram, Measurement
from jaxgate.model.numbers import ARRIVAL_FACTS, Facts, Phases, Samples
from jaxgate.model.verdict import BaselineName, CallTimes, Figures

SUMS = ("state_bytes", "peak_bytes")


def figures_of(now: Measurement, stored: StoredBaseline | None, duel: Duel | None = None) -> Figures:
    """Everything that is known of a case in numbers.

    Args:
        now: Today's measurement.
        stored: Its baseline, with the facts that its program has here; ``None`` if it has none.
        duel: The duel of both, if one was run.
    """
    baseline = None if stored is None else stored.baseline
    reference = now.reference
    return Figures(
        now=dict(_measured(now)),
        stored={} if baseline is None else dict(_measured(baseline)),
        reference={} if reference is None else dict(_compiled(reference.facts, reference.phases)),
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
    """What a baseline has in numbers, by name."""
    return dict(_measured(one))


def _measured(one: MeasuredProgram) -> Iterator[tuple[str, float]]:
    yield from _compiled(one.facts, one.phases)
    for name in ARRIVAL_FACTS:
        if (value := getattr(one, name)) is not None:
            yield name, value
    yield from _called(one)


def _compiled(facts: Facts, phases: Phases) -> Iterator[tuple[str, float]]:
    named = [(facts, [field.name for field in fields(Facts)] + list(SUMS))]
    named_phases = [(phases, [field.name for field in fields(Phases)])]
    for whole, names in (*named, *named_phases):
        for name in names:
            if (value := getattr(whole, name)) is not None:
                yield name, value


def _called(one: Measured) -> Iterator[tuple[str, float]]:
    if one.samples is not None:
        yield "run_ns", one.samples.run_ns
        if (slow := one.samples.percentile_ns(99)) is not None:
            yield "p99_ns", slow


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
