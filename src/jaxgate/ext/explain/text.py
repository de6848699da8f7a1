"""An explanation as lines for people, and as JSON for programs; and which experiment comes next, by how a case ended."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from jaxgate.model.decision import ALWAYS_FAIL, UNMEASURED, Status
from jaxgate.model.outcome import CaseRecord, RunRecord

_UNRECORDED = {Status.NO_BASELINE, Status.STALE_BASELINE}
_NOT_ACCEPTED = {"claim", "case", "drift"}
"""Kinds of findings that no new baseline can make right."""
_CALM = {Status.SAME, Status.FASTER, Status.IMPROVED, Status.EXPECTED, Status.WAIVED}


def experiments(case: CaseRecord) -> Iterator[tuple[str, str]]:
    """What to type next, and what it shows; what says most first, nothing where nothing is left to find out."""
    test, name = shlex.quote(case.test), shlex.quote(case.case)
    if case.status in _CALM:
        return
    if case.status in _UNRECORDED:
        why = "first baseline" if case.status == Status.NO_BASELINE else "what changed"
        yield f'pytest {test} --perf-update --perf-why "{why}"', "records what it is held against"
        return
    if case.status in UNMEASURED:
        yield f"pytest {test}", "fails in the same way, with the whole traceback"
        return
    if case.status == Status.UNDECIDED:
        yield f"pytest {test}", "decides it, on a machine where nothing else runs"
        return
    if case.origin and "environment" in case.origin:
        yield "jaxgate upgrade --help", "how a whole suite is held against another environment"
    if case.changes or case.origin:
        yield f"jaxgate repro {name}", "writes both programs into one file, with what differs"
    yield f"jaxgate bisect {name} --good HEAD~1", "names the first bad commit since a good one"
    if case.profiled:
        yield "jaxgate tensorboard", "opens its profiles"
    if not any(one.kind in _NOT_ACCEPTED and one.status in ALWAYS_FAIL for one in case.findings):
        yield f'pytest {test} --perf-update --perf-why "what it is worth"', "accepts it"


def explanation(case: CaseRecord) -> Iterator[str]:
    """The text of the run, the line to look at first, and what to type next."""
    yield from (case.text or f"{case.status}  {case.case}  {case.time.reason}").splitlines()
    if case.line:
        yield f"  look at   {case.line}"
    for number, (command, shows) in enumerate(experiments(case)):
        yield f"  {'then' if number else 'try':<8}  {command}"
        yield f"            {shows}"


def explanation_json(case: CaseRecord) -> dict[str, Any]:
    """All that is known of a case, by the names of ``results.json``, with ``next``: experiments, the best first."""
    following = [{"command": command, "shows": shows} for command, shows in experiments(case)]
    whole = _told(case, "case test status fails line findings causes origin time changes")
    return {**whole, "bundle": case.bundle or None, "next": following}


def _told(case: CaseRecord, keys: str) -> dict[str, Any]:
    """Some fields of a case, by their names."""
    about = asdict(replace(case, figures=None))  # they hold every call, and nobody asks for them
    return {key: about[key] for key in keys.split()} | {"line": case.line or None}


def listed(run: RunRecord) -> Iterator[str]:
    """A line for each case: status, name, first cause; what fails first."""
    for case in sorted(run.cases, key=lambda case: not case.fails):
        yield f"{case.status:<14} {case.case}  {next(iter(case.causes), '')}".rstrip()


def listed_json(run: RunRecord) -> dict[str, Any]:
    """The cases of a run, in the same order."""
    cases = [
        _told(case, "case status fails line causes") for case in sorted(run.cases, key=lambda case: not case.fails)
    ]
    return {"green": run.green, "gate_exit": run.gate_exit, "problems": list(run.problems), "cases": cases}
