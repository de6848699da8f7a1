"""The budget for accumulated drift: what a case may have lost since its first run, over all refreshes together.

Each gate compares with the last baseline, so that what each refresh accepted is forgotten by the next. Here nothing is
forgotten: time by the chain of duels, facts by their values. It fails closed: a drift that is shown to be beyond the budget
is REGRESSED, one that may be is UNDECIDED, and so is a chain with a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from jaxgate.judge.history.fact_drift import comparable, fact_drift
from jaxgate.judge.history.time_chain import chain_times, drift_of
from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model import TIME, DriftStart, Finding, HistoryPoint, Status, Tolerance

BEGIN_ANEW = "accept it with a [[drift]] entry in waivers.toml"
NO_HISTORY = "no earlier run is in the history: nothing to add up yet"


def judge_drift(
    points: Sequence[HistoryPoint], budget: float, tolerances: Iterable[Tolerance] = (), *, timed: bool = True
) -> list[Finding]:
    """Hold what a case lost since its first run against the budget.

    Args:
        points: Its runs of one folder, oldest first; the last is today's.
        budget: Share that may be lost, 0.1 for 10 %.
        tolerances: The workload's own.
        timed: Whether a clock speaks of this case at all.

    Returns:
        One finding for each quantity that is or may be beyond the budget; where there is no history, one that says so.
    """
    known = comparable(points)
    if len(known) < 2:  # noqa: PLR2004 - today and one before
        return [Finding(kind="drift", name=TIME, status=Status.SAME, detail=NO_HISTORY)]
    return [*(_time(known, budget) if timed else ()), *_facts(known, budget, tolerances)]


def unreadable(why: str) -> Finding:
    """What is said of a case where a budget was set and the history cannot be had."""
    return Finding(
        kind="drift",
        name=TIME,
        status=Status.INVALID,
        detail=f"the history cannot be read, so that no drift can be held against its budget: {why}",
    )


def since_accepted(
    points: Sequence[HistoryPoint], case: str, starts: Iterable[DriftStart], today: date
) -> tuple[HistoryPoint, ...]:
    """The runs that count: those from the day on which somebody accepted what came before.

    A day that is still to come accepts nothing: it would switch the budget off.
    """
    first = max((one.since for one in starts if one.case == case and one.since <= today), default=None)
    return tuple(point for point in points if first is None or point.moment[:10] >= first.isoformat())


def _time(points: Sequence[HistoryPoint], budget: float) -> Iterator[Finding]:
    chain = chain_times(points)
    if chain is None:
        return
    drift = drift_of(chain)
    if drift.low > 1 + budget:
        status, detail = Status.REGRESSED, BEGIN_ANEW
    elif drift.ratio > 1 + budget:
        status, detail = Status.UNDECIDED, "its interval does not show it to be beyond the budget"
    elif drift.gap:
        status, detail = Status.UNDECIDED, f"the drift from before is unknown; {BEGIN_ANEW}"
    else:
        return
    yield Finding(
        kind="drift",
        name=TIME,
        status=status,
        now=drift.ratio,
        against=1.0,
        allowed=1 + budget,
        detail=detail,
        drift=drift,
    )


def _facts(points: Sequence[HistoryPoint], budget: float, tolerances: Iterable[Tolerance]) -> Iterator[Finding]:
    """Facts of which more is worse. The budget is never stricter than what one gate lets pass at once."""
    own = {tolerance.fact: tolerance for tolerance in tolerances}
    for policy in (*POLICIES, *ARRIVAL_POLICIES):
        drift = fact_drift(points, policy) if policy.better == "lower" else None
        if drift is None:
            continue
        allowed = own.get(policy.name, policy)
        limited = replace(policy, relative=max(budget, allowed.relative), absolute=allowed.absolute)
        limit = limited.worst_allowed(int(drift.first))
        if drift.now > limit:
            yield Finding(
                kind="drift",
                name=policy.name,
                status=Status.REGRESSED,
                now=drift.now,
                against=drift.first,
                allowed=limit,
                detail=BEGIN_ANEW,
                drift=drift,
            )
