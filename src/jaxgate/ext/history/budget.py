"""The budget for accumulated drift: what a case may have lost since its first run, over all refreshes together.

Each gate compares with the last baseline, so that what each refresh accepted is forgotten by the next. Here nothing is
forgotten: time by the chain of duels, facts by their values. It fails closed: a drift that is shown to be beyond the budget
is REGRESSED, one that may be is UNDECIDED, and so is a chain with a gap.

The module also names what a refresh accepted: the figure of the new baseline that is worst beside the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date
from math import inf

from jaxgate.ext.history.chain import chain_times, comparable, drift_of, fact_drift
from jaxgate.ext.history.drift import DriftStart
from jaxgate.ext.history.model import HistoryPoint
from jaxgate.ext.history.stored import StoredRuns
from jaxgate.judge.order import conclude
from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model.decision import Status
from jaxgate.model.verdict import Finding, Verdict
from jaxgate.model.waiver import TIME
from jaxgate.model.workload import Tolerance

BEGIN_ANEW = "accept it with a [[drift]] entry in waivers.toml"
NO_HISTORY = "no earlier run is in the history: nothing to add up yet"


def judge_drift(
    points: Sequence[HistoryPoint], budget: float, tolerances: Iterable[Tolerance] = (), *, timed: bool = True
) -> list[Finding]:
    """Hold what a case lost since its first run against the budget, the share that may be lost: 0.1 for 10 %.

    Runs are of one folder, oldest first; the last is today's. ``timed`` says whether a clock speaks of this case at all.

    Returns:
        One finding for each quantity that is or may be beyond the budget; where there is no history, one that says so.
    """
    known = comparable(points)
    if len(known) < 2:  # noqa: PLR2004 - today and one before
        return [Finding(kind="drift", name=TIME, status=Status.SAME, detail=NO_HISTORY)]
    return [*(_time(known, budget) if timed else ()), *_facts(known, budget, tolerances)]


def unreadable(why: str) -> Finding:
    """What is said of a case where a budget was set and the history cannot be had."""
    detail = f"the history cannot be read, so that no drift can be held against its budget: {why}"
    return Finding(kind="drift", name=TIME, status=Status.INVALID, detail=detail)


def since_accepted(
    points: Sequence[HistoryPoint], case: str, starts: Iterable[DriftStart], today: date
) -> tuple[HistoryPoint, ...]:
    """The runs from the day on which somebody accepted what came before.

    A day to come accepts nothing: it would switch the budget off.
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


NO_STORE = "no history is kept"


@dataclass(frozen=True, slots=True)
class DriftBudget:
    """Adds to a verdict what its case lost since its first run."""

    budget: float | None  # share that may be lost; `None` adds nothing and reads nothing
    past: StoredRuns | None  # what earlier runs stored; `None` where nothing is kept
    starts: Sequence[DriftStart]  # drifts that were accepted
    _: KW_ONLY
    today: date  # the UTC date
    moment: Callable[[], str]  # date and time, UTC
    commit: Callable[[], str | None]  # what is checked out

    def judge(self, verdict: Verdict, folder: str, tolerances: Iterable[Tolerance], *, strict: bool) -> Verdict:
        """The verdict with what its drift adds."""
        if self.budget is None or verdict.figures is None or verdict.figures.baseline is None:
            return verdict
        found = self._findings(verdict, folder, self.budget, tolerances)
        return conclude(verdict, [*verdict.findings, *found], strict=strict)

    def _findings(self, verdict: Verdict, folder: str, budget: float, tolerances: Iterable[Tolerance]) -> list[Finding]:
        if self.past is None:
            return [unreadable(NO_STORE)]
        try:
            past = self.past.points(verdict.case, folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, a budget that cannot be checked is not kept
            return [unreadable(str(error) or type(error).__name__)]
        counted = since_accepted(past, verdict.case, self.starts, self.today)
        today = point_of(verdict, folder, moment=self.moment(), commit=self.commit())
        timed = verdict.cost.run_ns is not None and not (verdict.hardware and verdict.hardware.is_virtual)
        return judge_drift((*counted, today), budget, tolerances, timed=timed)


def point_of(verdict: Verdict, folder: str, *, moment: str, commit: str | None) -> HistoryPoint:
    """Today's run as a point of the history.

    A slow-down that fresh processes have still to confirm does not count yet. If they do, the case fails for it, or a waiver
    covers it, and it counts from the next run on.
    """
    figures = verdict.figures
    decision = None if verdict.time.status is Status.SLOWER else verdict.time.decision
    assert figures is not None  # the caller looked
    return HistoryPoint(
        run="",
        moment=moment,
        commit=commit,
        case=verdict.case,
        folder=folder,
        status=str(verdict.status),
        program=figures.program,
        baseline=figures.baseline,
        time_status=str(verdict.time.status),
        ratio=None if decision is None else decision.ratio,
        low=None if decision is None else decision.low,
        high=None if decision is None else decision.high,
        figures=figures.now,
        environment=figures.environment,
    )


def worst_accepted(verdict: Verdict) -> Finding | None:
    """The figure that a refreshed case lost most in; ``None`` if it lost in none.

    What decided the verdict comes first. Else it is the fact, or the time where a duel speaks of it, that moved by the
    largest share: each may be within what one gate lets pass, and the sum of many such is a drift.
    """
    worst = verdict.worst
    if worst is not None and verdict.status in (Status.REGRESSED, Status.SLOWER):
        return worst
    found = [(lost, place, finding) for place, (lost, finding) in enumerate(_lost(verdict))]
    return max(found, key=lambda one: (one[0], -one[1]))[2] if found else None


def _lost(verdict: Verdict) -> Iterator[tuple[float, Finding]]:
    """Each figure that is worse, with the factor."""
    decision = verdict.time.decision
    if decision is not None and decision.ratio > 1:
        yield from ((decision.ratio, finding) for finding in verdict.findings if finding.kind == "time")
    known = {finding.name: finding for finding in verdict.findings if finding.kind == "fact"}
    for policy in (*POLICIES, *ARRIVAL_POLICIES):
        finding = known.get(policy.name)
        if finding is None or finding.now is None or finding.against is None:
            continue
        less = policy.better == "higher"
        before, now = (finding.now, finding.against) if less else (finding.against, finding.now)
        if now > before:
            yield now / before if before else inf, finding
