"""What a worker of pytest-xdist reports to the controller: it travels with the reports of its tests.

The controller's run then knows what one process would know, so that everything that is shown and written at the end
is shown and written once, from there.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.plugin import benchmark_rows

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession
    from jaxgate.model.measurement import Fingerprints
    from jaxgate.model.verdict import Verdict
    from jaxgate.model.workload import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDelta:
    """What a worker found since it last reported."""

    verdicts: tuple[Verdict, ...] = ()  # of cases that were judged to the end
    tests: Mapping[str, str] = field(default_factory=dict)  # which test has which case
    unfinished: tuple[str, ...] = ()  # tests that ended before they had called all of their gates, as far as is known
    # tests whose cases have no program for the target, each with the reason
    left_out: Mapping[str, str] = field(default_factory=dict)
    costs: Mapping[str, Cost] = field(default_factory=dict)  # what gates took, by test
    # fingerprints of the cases that have no baseline
    new_programs: Mapping[str, Fingerprints] = field(default_factory=dict)
    changed_programs: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)  # of the stored programs, by case
    # release lines of jax, by case, of baselines that another one recorded
    other_lines: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # metrics for TensorBoard, by case
    taken: tuple[str, ...] = ()  # cases that left a bundle
    left: tuple[str, ...] = ()  # cases that were not profiled because enough were
    problems: tuple[str, ...] = ()  # why there are no bundles, or no lock
    notes: tuple[str, ...] = ()  # about calibrations that cannot be used
    profiled: int = 0  # how many cases were profiled
    accused: int = 0  # how many tests failed because the machine is the suspect
    rows: tuple[Any, ...] = ()  # pytest-benchmark's


class DeltaTracker:
    """Gives what a worker found and did not report before."""

    def __init__(self, config: pytest.Config, session: GateSession) -> None:
        self._config = config
        self._session = session
        self._reported: dict[str, Any] = {}
        self._waiting: list[Any] = []
        self._rows = 0

    def delta(self) -> SessionDelta:
        """What was found since the last time. The row of a case that waits for confirmation waits with it."""
        result, evidence = self._session.result, self._session.evidence
        rows = [*self._waiting, *benchmark_rows.rows_since(self._config, self._rows)]
        self._rows += len(rows) - len(self._waiting)
        self._waiting = [row for row in rows if row.extra_info.get("case") in result.provisional]
        return SessionDelta(
            verdicts=self._since("verdicts", result.verdicts),
            tests=self._new("tests", result.tests),
            unfinished=self._since("unfinished", result.unfinished),
            left_out=self._new("left_out", result.left_out),
            costs=self._new("costs", result.costs),
            new_programs=self._new("new_programs", result.new_programs),
            changed_programs=self._new("changed_programs", result.changed_programs),
            dates=self._new("dates", result.dates),
            other_lines=self._new("other_lines", result.other_lines),
            scalars=self._new("scalars", evidence.scalars),
            taken=self._since("taken", evidence.taken),
            left=self._since("left", evidence.left),
            problems=self._since("problems", evidence.problems),
            notes=self._since("notes", self._session.margins.notes),
            profiled=self._more("profiled", evidence.profiled),
            accused=self._more("accused", result.accused),
            rows=tuple(row for row in rows if row.extra_info.get("case") not in result.provisional),
        )

    def _since(self, name: str, items: list[Any]) -> tuple[Any, ...]:
        new = self._more(name, len(items))
        return tuple(items[len(items) - new :])

    def _new(self, name: str, items: Mapping[str, Any]) -> dict[str, Any]:
        known: set[str] = self._reported.setdefault(name, set())
        found = {key: value for key, value in items.items() if key not in known}
        known |= set(found)
        return found

    def _more(self, name: str, number: int) -> int:
        before = self._reported.get(name, 0)
        self._reported[name] = number
        return number - int(before)


def absorb(session: GateSession, config: pytest.Config, delta: SessionDelta) -> None:
    """Add what a worker found to the controller's run."""
    result, notes = session.result, session.margins.notes
    result.verdicts += delta.verdicts
    for case, test in delta.tests.items():
        result.add_name(case, test)
    result.unfinished += delta.unfinished
    result.left_out |= delta.left_out
    result.costs |= delta.costs
    result.new_programs |= delta.new_programs
    result.changed_programs |= delta.changed_programs
    result.dates |= delta.dates
    result.other_lines |= delta.other_lines
    result.accused += delta.accused
    session.evidence.add(
        delta.scalars, taken=delta.taken, left=delta.left, problems=delta.problems, profiled=delta.profiled
    )
    notes += [note for note in delta.notes if note not in notes]
    benchmark_rows.add_rows(config, list(delta.rows))


def pack(value: object) -> str:
    """Anything of ours as text, for the way from a worker to its controller and nowhere else."""
    return base64.b64encode(pickle.dumps(value)).decode()


def unpack(text: str) -> Any:
    """What was packed: it comes from a process of this very run, never from a file."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - as the docstring says
