"""Scaling efficiency: the rates of one series of cases side by side. Pure, and shown only: each time is gated by its duel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from jaxgate.model import Point, Scaling, Verdict


def scaling(verdicts: Iterable[Verdict]) -> tuple[Scaling, ...]:
    """Compare the rates of cases that share a series, on devices of the same kind.

    Of strong scaling (the same work) and of weak scaling (so much for each device) the efficiency is the same
    quotient. Virtual CPU devices share their cores and show nothing: they are left out.
    """
    rates: defaultdict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for verdict in verdicts:
        amount, at, run_ns = verdict.amount, verdict.hardware, verdict.run_ns
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
