"""Drift, creep and steps in words, a line each."""

from __future__ import annotations

from jaxgate.model import TIME, CaseChanges, Creep, Drift, FactDrift, Finding, Step, plural, shortlist
from jaxgate.report.units import show, show_pair, show_ratio

COMMIT = 7
"""Digits of a commit that are shown."""
MAX_DIFFERENCES = 3
_WHOLE_PERCENT = 10


def change_lines(changes: CaseChanges) -> list[str]:
    """All that a history shows, a line each: drift, facts, creep, steps with the newest first."""
    drift = [] if changes.drift is None else [f"time: {drift_line(changes.drift)}"]
    lines = [*drift, *map(fact_drift_line, changes.facts), *map(creep_line, changes.creeps)]
    return [*lines, *map(step_line, reversed(changes.steps))]


def drift_line(drift: Drift) -> str:
    """What a case's time became over its refreshes.

    ``0.8 % a step over the last 12 accepted refreshes: 10 % [8, 12] since 2026-03-02; each was within its tolerance (commits
    1a2b3c4 … 9f8e7d6)``.
    """
    total = f"{_total(drift.ratio, drift.low, drift.high)} since {drift.since}"
    known = f"; {drift.gap}" if drift.gap else ""
    today = "; today's own time is not known, this is its baseline's" if drift.until_baseline else ""
    count = len(drift.accepted)
    if not count:
        return f"{total}, against the first baseline{today}{known}"
    refreshes = f"the last {count} accepted refreshes" if count > 1 else "one accepted refresh"
    beyond = sum(not one.within for one in drift.accepted)
    each = "each was within its tolerance" if drift.each_within else f"{beyond} of {count} beyond the gate's margin"
    where = _commits([one.commit for one in drift.accepted])
    return f"{_percent(drift.step)} % a step over {refreshes}: {total}; {each}{where}{today}{known}"


def fact_drift_line(drift: FactDrift) -> str:
    """What a fact became: ``temp_bytes 1.05 MB → 1.31 MB = 1.25 × in 4 steps since 2026-03-02``."""
    first, now = show_pair(drift.name, drift.first, drift.now)
    ratio = show_ratio(drift.now, drift.first)
    moves = plural(drift.steps, "step")
    changed = f" ({shortlist(drift.environment, MAX_DIFFERENCES)})" if drift.environment else ""
    return f"{drift.name} {first} → {now}{f' = {ratio}' if ratio else ''} in {moves} since {drift.since}{changed}"


def step_line(step: Step) -> str:
    """Where a quantity moved: ``time 5.1 % up on 2026-06-01 (commit 1a2b3c4, not yet in 0f9e8d7), in 3 runs since``."""
    if step.before is None or step.after is None:
        size = _percent(1 + abs(step.ratio - 1))
        what = f"{step.quantity} {size} % {'up' if step.ratio > 1 else 'down'}"
    else:
        before, after = show_pair(step.quantity, step.before, step.after)
        ratio = show_ratio(step.after, step.before)
        what = f"{step.quantity} {before} → {after}{f' = {ratio}' if ratio else ''}"
    known = [f"commit {step.commit[:COMMIT]}"] if step.commit else []
    known += [f"not yet in {step.last_before[:COMMIT]}"] if step.last_before else []
    where = f" ({', '.join(known)})" if known else ""
    return f"{what} on {step.moment[:10]}{where}, in {plural(step.runs, 'run')} since"


def creep_line(creep: Creep) -> str:
    """What went on slowly: ``time creeps: 3.2 % [2, 4.4] in 40 runs since 2026-03-02, no single step (commits …)``."""
    what = "time" if creep.quantity == TIME else creep.quantity
    total = _total(creep.ratio, creep.low, creep.high)
    since = f"in {plural(creep.runs, 'run')} since {creep.since[:10]}"
    return f"{what} creeps: {total} {since}, no single step{_commits(list(creep.commits))}"


def accepted_figure(finding: Finding) -> str:
    """The worst figure that a refresh accepted: ``temp_bytes 24 kB against 20 kB = 1.20 ×``, short enough for the log."""
    quantity = finding.name.partition(" ")[0]
    now, against = show_pair(quantity, finding.now, finding.against)
    ratio = show_ratio(finding.now, finding.against)
    what = "a call takes" if finding.kind == "time" else quantity
    return f"{what} {now} against {against}{f' = {ratio}' if ratio else ''}"


def describe_drift(finding: Finding) -> str:
    """A finding about drift: what was lost, and what the budget is."""
    drift, detail = finding.drift, f"; {finding.detail}" if finding.detail else ""
    if isinstance(drift, FactDrift):
        return f"drift: {fact_drift_line(drift)}, allowed {show(drift.name, finding.allowed)} in all{detail}"
    if isinstance(drift, Drift) and finding.allowed is not None:
        return f"drift: {drift_line(drift)}, budget {_percent(finding.allowed)} %{detail}"
    return f"drift: {finding.detail}"


def _total(ratio: float, low: float, high: float) -> str:
    return f"{_percent(ratio)} % [{_percent(low)}, {_percent(high)}]"


def _percent(ratio: float) -> str:
    percent = (ratio - 1) * 100
    text = f"{percent:.0f}" if abs(percent) >= _WHOLE_PERCENT else f"{percent:.1f}"
    return text.removesuffix(".0") if text not in ("-0.0", "-0") else "0"


def _commits(commits: list[str | None]) -> str:
    known = [commit[:COMMIT] for commit in commits if commit]
    if not known:
        return ""
    return f" (commit {known[0]})" if len(known) == 1 else f" (commits {known[0]} … {known[-1]})"
