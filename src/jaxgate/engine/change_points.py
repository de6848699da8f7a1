"""Change points by ruptures, and what they say of a case's history.

PELT with squared distances is its ``KernelCPD`` with a linear kernel, which is written in C: 0.13 ms for 200 runs. E-divisive
as Apache Otava uses it asks no knowledge of the noise and pays with permutations at each look; here the noise is known from
duels, links of refreshes have errors that no search knows of, and the test that follows needs proposals only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import log

from jaxgate.judge import (
    ARRIVAL_POLICIES,
    POLICIES,
    Chain,
    ChainPoint,
    Shifts,
    chain_times,
    comparable,
    drift_of,
    fact_drift,
    fact_steps,
    find_shifts,
)
from jaxgate.model import TIME, CaseChanges, HistoryPoint, Phases

PHASE_NOISE = 0.05
"""Standard deviation below which no phase is taken to be: it is measured once in a process, on another day each time."""


def split(values: Sequence[float], penalty: float, least: int) -> Sequence[int]:
    """Ends of the levels that fit best, each paying the penalty; see ``Split``."""
    import numpy as np  # noqa: PLC0415 - only where a history is looked at
    from ruptures import KernelCPD  # noqa: PLC0415 - likewise; it takes a second to import

    if len(values) < 2 * least:
        return [len(values)]
    search = KernelCPD(kernel="linear", min_size=least)
    return [int(end) for end in search.fit(np.asarray(values, float).reshape(-1, 1)).predict(pen=penalty)]


def changes_of(points: Sequence[HistoryPoint]) -> CaseChanges:
    """All that the history of one case in one folder shows, of its newest run.

    Args:
        points: Its runs, oldest first.
    """
    known = comparable(points)
    chain = chain_times(known)
    policies = (*POLICIES, *ARRIVAL_POLICIES)
    facts = [drift for policy in policies if (drift := fact_drift(known, policy)) is not None and drift.steps]
    shifts = [phase_shifts(known, field.name) for field in fields(Phases)]
    shifts += [] if chain is None else [shifts_of(chain)]
    steps = [step for one in shifts for step in one.steps]
    steps += [step for policy in policies for step in fact_steps(points, policy.name)]
    return CaseChanges(
        drift=None if chain is None else drift_of(chain),
        facts=tuple(facts),
        steps=tuple(sorted(steps, key=lambda step: step.moment)),
        creeps=tuple(one.creep for one in shifts if one.creep is not None),
    )


def time_shifts(points: Sequence[HistoryPoint]) -> Shifts:
    """Steps and creep of a case's time, by the chain of its duels."""
    chain = chain_times(points)
    return Shifts() if chain is None else shifts_of(chain)


def shifts_of(chain: Chain) -> Shifts:
    """The same of a chain that is known already."""
    return find_shifts(chain.points, TIME, split)


def phase_shifts(points: Sequence[HistoryPoint], phase: str) -> Shifts:
    """Steps and creep of a phase, by its values on several days: noisy, and moved by the machine as well."""
    series = [
        ChainPoint(point=point, value=log(point.figures[phase]), error=PHASE_NOISE)
        for point in points
        if point.figures.get(phase, 0) > 0
    ]
    return find_shifts(series, phase, split, least_noise=PHASE_NOISE)
