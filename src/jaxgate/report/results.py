"""A whole run as JSON, for machines; ``docs/results.md`` says what each key means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from importlib.metadata import version
from typing import Any

from jaxgate.ext.energy.model import Energy, EnergyRatio
from jaxgate.ext.energy.text import energy_json
from jaxgate.ext.growth.model import Grown
from jaxgate.ext.history.text import describe_drift
from jaxgate.model.decision import Status
from jaxgate.model.outcome import RESULTS_SCHEMA, FindingRecord, Outcome
from jaxgate.model.verdict import CallTimes, Figures, Finding, Verdict
from jaxgate.report.printable import json_text
from jaxgate.report.text import explain

PREFIX = "jaxgate"
_OF_DUELS = ("ratio", "low", "high", "pairs", "margin", "sees")
"""Figures of a duel, which are null without one."""
_DIGITS = 5
"""Digits of the time of a call: as many as a clock with a resolution of 0.01 % has."""


def results_json(outcome: Outcome) -> str:
    """The run: how it ended, and every case with its figures and what was not the same."""
    environments = _environments(outcome)
    content = {
        "schema": RESULTS_SCHEMA,
        "jaxgate": version("jaxgate"),
        "run": outcome.run,
        "moment": outcome.moment,
        "green": outcome.green,
        "exit_status": outcome.exit_status,
        "gate_exit": int(outcome.gate_exit),
        "commit": outcome.commit,
        "dirty": outcome.dirty,
        "elsewhere": outcome.elsewhere,
        "project": outcome.project,
        **({"shard": asdict(outcome.shard)} if outcome.shard else {}),
        "not_judged": list(outcome.not_judged),
        "problems": list(outcome.problems),
        "unfit": list(outcome.unfit),
        "undecided_changed": [verdict.case for verdict in outcome.verdicts if verdict.changed_untimed],
        "baseline_edits": None if outcome.baseline_edits is None else list(outcome.baseline_edits),
        "judge_edits": list(outcome.judge_edits),
        "needs_commit": list(outcome.needs_commit),
        "scaling": [asdict(series) for series in outcome.scaling],
        "environments": [dict(one) for one in environments],
        "cases": [_case(verdict, outcome, environments) for verdict in outcome.verdicts],
    }
    return json_text(content)


def _case(verdict: Verdict, outcome: Outcome, environments: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    decision, capture = verdict.time.decision, verdict.evidence.capture
    table = None if capture is None else capture.table
    return {
        "case": verdict.case,
        "test": outcome.tests.get(verdict.case, ""),
        "line": outcome.lines.get(verdict.case, ""),
        "hardware": verdict.hardware.slug if verdict.hardware else None,
        "status": str(verdict.status),
        "fails": verdict.fails,
        "recorded": verdict.baseline.recorded,
        "run_ns": verdict.cost.run_ns,
        "roofline": _roofline(verdict),
        "energy": energy_json(verdict),
        "time": {
            "status": str(verdict.time.status),
            "reason": verdict.time.reason,
            **{name: decision and getattr(decision, name) for name in _OF_DUELS},
            "confirmed": list(verdict.time.confirmed),
        },
        "findings": [_finding(finding) for finding in verdict.findings if finding.status is not Status.SAME],
        "causes": [str(cause) for cause in verdict.causes],
        "operations": [asdict(row) for row in table.culprits] if table is not None else [],
        "communication": asdict(table.communication) if table is not None and table.communication is not None else None,
        "baseline": verdict.baseline.described,
        "origin": verdict.origin and verdict.origin.place,
        "opinion": None if verdict.opinion is None else {**asdict(verdict.opinion), "by": str(verdict.opinion.by)},
        "bundle": "" if capture is None else capture.folder,
        "profiled": [] if capture is None else list(capture.sides),
        "text": _text(verdict, outcome),
        "changes": list(verdict.evidence.changes),
        "allocations": list(verdict.evidence.allocations) if verdict.fails else [],
        "amount": verdict.cost.amount and asdict(verdict.cost.amount),
        "figures": None if verdict.figures is None else _figures(verdict.figures, environments),
    }


def _environments(outcome: Outcome) -> list[Mapping[str, str]]:
    """Each environment once: nearly all cases of a run share one."""
    found: list[Mapping[str, str]] = []
    for verdict in outcome.verdicts:
        if verdict.figures is not None and verdict.figures.environment not in found:
            found.append(verdict.figures.environment)
    return found


def _growth(growth: Mapping[str, Grown]) -> dict[str, Any]:
    return {size: {"sizes": grown.sizes, "facts": dict(grown.facts)} for size, grown in growth.items()}


def _figures(figures: Figures, environments: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    return {
        "now": dict(figures.now),
        "stored": dict(figures.stored),
        "reference": dict(figures.reference),
        "environment": environments.index(figures.environment),
        "program": figures.program,
        "baseline": figures.baseline and asdict(figures.baseline),
        "times": _times(figures.times),
        **{name: _growth(found) for name in ("growth", "stored_growth") if (found := getattr(figures, name))},
    }


def _times(times: CallTimes) -> dict[str, Any]:
    def rounded(side: Sequence[float]) -> list[float]:
        return [float(f"{value:.{_DIGITS}g}") for value in side]

    return {"now": rounded(times.now), "stored": rounded(times.stored), "in_turn": times.in_turn}


def _roofline(verdict: Verdict) -> dict[str, Any] | None:
    """The least time of a call and of each resource, in nanoseconds, and what is not known of them."""
    found = verdict.cost.roofline
    if found is None:
        return None
    return {
        "least_ns": found.least_ns,
        "bound_by": found.bound_by,
        **{f"{resource}_ns": time_ns for resource, time_ns in found.times_ns.items()},
        "unknown": dict(found.unknown),
    }


def _text(verdict: Verdict, outcome: Outcome) -> str:
    if verdict.status is Status.SAME:
        return ""
    return explain(
        verdict, test=outcome.tests.get(verdict.case, ""), compiled_as=outcome.compiled_as, elsewhere=outcome.elsewhere
    )


def _finding(finding: Finding) -> dict[str, Any]:
    """What ``FindingRecord`` reads back."""
    kept = {field.name: getattr(finding, field.name) for field in fields(FindingRecord)}
    return kept | {"detail": describe_drift(finding) if finding.kind == "drift" else finding.detail}


def verdict_properties(verdict: Verdict) -> list[tuple[str, str]]:
    """The values, in an order that stays: name and text.

    Times are in nanoseconds and ratios are today's to the baseline's; a value that is not known is left out.
    """
    decision, worst = verdict.time.decision, verdict.worst
    energy, duel = verdict.cost.energy, verdict.cost.duel_energy
    found: dict[str, object] = {
        "case": verdict.case,
        "status": verdict.status,
        "hardware": verdict.hardware.slug if verdict.hardware else None,
        "run_ns": None if verdict.cost.run_ns is None else round(verdict.cost.run_ns),
        "time": verdict.time.status,
        "ratio": None if decision is None else f"{decision.ratio:.4f}",
        "sees": None if decision is None else f"{decision.sees:.4f}",
        "call_uj": round(energy.call_uj, 3) if isinstance(energy, Energy) else None,
        "energy_ratio": f"{duel.ratio:.4f}" if isinstance(duel, EnergyRatio) else None,
        "worst": worst.name if worst is not None and verdict.fails else None,
        "now": worst.now if worst is not None and verdict.fails else None,
        "against": worst.against if worst is not None and verdict.fails else None,
        "culprit": str(verdict.causes[0]) if verdict.causes else None,
        "bundle": verdict.evidence.capture.folder if verdict.evidence.capture is not None else None,
        "recorded": verdict.baseline.recorded or None,
    }
    return [(f"{PREFIX}.{name}", str(value)) for name, value in found.items() if value is not None]
