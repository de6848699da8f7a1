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


_LISTS = ("verdicts", "unfinished")
_BY_NAME = ("left_out", "costs", "new_programs", "changed_programs", "dates", "other_lines")
"""What a ``SessionResult`` has that each worker adds to."""
_EVIDENCE = ("taken", "left", "problems")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDelta:
    """What a worker found since it last reported."""

    lists: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # `_LISTS` of its result
    by_name: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # `_BY_NAME` of its result
    tests: Mapping[str, str] = field(default_factory=dict)  # which test has which case
    accused: int = 0  # how many tests failed because the machine is the suspect
    evidence: Mapping[str, Any] = field(default_factory=dict)  # what `EvidenceCollector.add` takes
    notes: tuple[str, ...] = ()  # about calibrations that cannot be used
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
        """What was found since the last call. The row of a case that waits for confirmation waits with it."""
        result, evidence = self._session.result, self._session.evidence
        rows = [*self._waiting, *benchmark_rows.rows_since(self._config, self._rows)]
        self._rows += len(rows) - len(self._waiting)
        self._waiting = [row for row in rows if row.extra_info.get("case") in result.provisional]
        return SessionDelta(
            lists={name: self._since(name, getattr(result, name)) for name in _LISTS},
            by_name={name: self._new(name, getattr(result, name)) for name in _BY_NAME},
            tests=self._new("tests", result.tests),
            accused=self._more("accused", result.accused),
            evidence={
                "scalars": self._new("scalars", evidence.scalars),
                "profiled": self._more("profiled", evidence.profiled),
                **{name: self._since(name, getattr(evidence, name)) for name in _EVIDENCE},
            },
            notes=self._since("notes", self._session.margins.notes),
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
    for name, items in delta.lists.items():
        getattr(result, name).extend(items)
    for name, named in delta.by_name.items():
        getattr(result, name).update(named)
    for case, test in delta.tests.items():
        result.add_name(case, test)
    result.accused += delta.accused
    session.evidence.add(**delta.evidence)
    notes += [note for note in delta.notes if note not in notes]
    benchmark_rows.add_rows(config, list(delta.rows))


def pack(value: object) -> str:
    """Anything of ours as text, for the way from a worker to its controller and nowhere else."""
    return base64.b64encode(pickle.dumps(value)).decode()


def unpack(text: str) -> Any:
    """What was packed: it comes from a process of this very run, never from a file."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - as the docstring says
