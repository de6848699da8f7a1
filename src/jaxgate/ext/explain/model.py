"""Which experiment comes next, by how a case ended."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from jaxgate.model.decision import Status
from jaxgate.model.outcome import CaseRecord

_UNMEASURED = {Status.INVALID, Status.RESOURCE_EXHAUSTED}
_UNRECORDED = {Status.NO_BASELINE, Status.STALE_BASELINE}
_CALM = {Status.SAME, Status.FASTER, Status.IMPROVED, Status.EXPECTED, Status.WAIVED}


@dataclass(frozen=True, slots=True)
class Experiment:
    """A command, and what it shows."""

    command: str
    shows: str


def experiments(case: CaseRecord) -> Iterator[Experiment]:
    """What to type next, what says most first; nothing where nothing is left to find out.

    Args:
        case: A case of a run that is over.
    """
    test, name = shlex.quote(case.test), shlex.quote(case.case)
    if case.status in _CALM:
        return
    if case.status in _UNRECORDED:
        yield Experiment(f'pytest {test} --perf-update --perf-why "first baseline"', "records what it is held against")
        return
    if case.status in _UNMEASURED:
        yield Experiment(f"pytest {test}", "fails in the same way, with the whole traceback")
        return
    if case.status == Status.UNDECIDED:
        yield Experiment(f"pytest {test}", "decides it, on a machine where nothing else runs")
        return
    if case.origin and "environment" in case.origin:
        yield Experiment("jaxgate upgrade --help", "how a whole suite is held against another environment")
    if case.changes or case.origin:
        yield Experiment(f"jaxgate repro {name}", "writes both programs into one file, with what differs")
    yield Experiment(f"jaxgate bisect {name} --good HEAD~1", "names the first bad commit since a good one")
    if case.profiled:
        yield Experiment("jaxgate tensorboard", "opens its profiles")
    yield Experiment(f'pytest {test} --perf-update --perf-why "what it is worth"', "accepts it")
