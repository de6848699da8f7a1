"""An explanation as lines for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from jaxgate.ext.explain.model import experiments
from jaxgate.model.outcome import CaseRecord, RunRecord


def explanation(case: CaseRecord) -> Iterator[str]:
    """The text of the run, the line to look at first, and what to type next."""
    yield from (case.text or f"{case.status}  {case.case}  {case.time.reason}").splitlines()
    if case.line:
        yield f"  look at   {case.line}"
    for number, one in enumerate(experiments(case)):
        yield f"  {'then' if number else 'try':<8}  {one.command}"
        yield f"            {one.shows}"


def explanation_json(case: CaseRecord) -> dict[str, Any]:
    """All that is known of it, by the names of ``results.json``, with ``next``: experiments, the best one first."""
    return {
        "case": case.case,
        "test": case.test,
        "status": case.status,
        "fails": case.fails,
        "line": case.line or None,
        "findings": [asdict(finding) for finding in case.findings],
        "causes": list(case.causes),
        "origin": case.origin,
        "time": asdict(case.time),
        "changes": list(case.changes),
        "bundle": case.bundle or None,
        "next": [asdict(one) for one in experiments(case)],
    }


def listed(run: RunRecord) -> Iterator[str]:
    """A line for each case: status, name, first cause; what fails first."""
    for case in sorted(run.cases, key=lambda case: not case.fails):
        yield f"{case.status:<14} {case.case}  {next(iter(case.causes), '')}".rstrip()


def listed_json(run: RunRecord) -> dict[str, Any]:
    """The cases of a run, in the same order."""
    cases = [
        {
            "case": case.case,
            "status": case.status,
            "fails": case.fails,
            "line": case.line or None,
            "causes": list(case.causes),
        }
        for case in sorted(run.cases, key=lambda case: not case.fails)
    ]
    return {
        "green": run.green,
        "gate_exit": run.gate_exit,
        "problems": list(run.problems),
        "cases": cases,
    }
