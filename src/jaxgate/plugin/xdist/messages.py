"""What a worker of pytest-xdist reports to the controller: it travels with the reports of its tests.

The controller's run then knows what one process would know, so that everything that is shown and written at the end
is shown and written once, from there.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.plugin import benchmark_rows

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession


_RESULT = (
    *("verdicts", "unfinished", "left_out", "costs", "new_programs", "changed_programs", "dates", "other_lines"),
    "accused",
)
_EVIDENCE = ("taken", "left", "problems", "scalars", "profiled")
"""What a ``SessionResult`` and the evidence have that each worker adds to: lists, mappings and numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDelta:
    """What a worker found since it last reported."""

    result: Mapping[str, Any]  # `_RESULT` of its result
    evidence: Mapping[str, Any]  # `_EVIDENCE` of its evidence
    tests: Mapping[str, str]  # which test has which case
    notes: Sequence[str]  # about calibrations that cannot be used
    rows: Sequence[Any]  # pytest-benchmark's


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
            result={name: self._new(name, getattr(result, name)) for name in _RESULT},
            evidence={name: self._new(name, getattr(evidence, name)) for name in _EVIDENCE},
            tests=self._new("tests", result.tests),
            notes=self._new("notes", self._session.margins.notes),
            rows=[row for row in rows if row.extra_info.get("case") not in result.provisional],
        )

    def _new(self, name: str, found: Any) -> Any:
        """What is new of a list, of a mapping by its keys, or of a number."""
        before = self._reported.get(name, 0)
        if isinstance(found, dict):
            known = before or frozenset()
            self._reported[name] = frozenset(found)
            return {key: value for key, value in found.items() if key not in known}
        if isinstance(found, list):
            self._reported[name] = len(found)
            return found[before:]
        self._reported[name] = found
        return found - before


def absorb(session: GateSession, config: pytest.Config, delta: SessionDelta) -> None:
    """Add what a worker found to the controller's run."""
    result, notes = session.result, session.margins.notes
    for name, new in delta.result.items():
        known = getattr(result, name)
        if isinstance(known, dict):
            known.update(new)
        elif isinstance(known, list):
            known.extend(new)
        else:
            setattr(result, name, known + new)
    for case, test in delta.tests.items():
        result.add_name(case, test)
    session.evidence.add(**delta.evidence)
    notes += [note for note in delta.notes if note not in notes]
    benchmark_rows.add_rows(config, list(delta.rows))


def pack(value: object) -> str:
    """Anything of ours as text, for the way from a worker to its controller and nowhere else."""
    return base64.b64encode(pickle.dumps(value)).decode()


def unpack(text: str) -> Any:
    """What was packed: it comes from a process of this very run, never from a file."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - as the docstring says
