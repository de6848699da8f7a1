"""What a worker of pytest-xdist has to tell the controller: it travels with the reports of its tests.

The controller's run then knows what one process would know, so that everything that is shown and written at the end
is shown and written once, from there.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.plugin import benchmarks

if TYPE_CHECKING:
    from jaxgate.model import Verdict
    from jaxgate.model.cost import Cost
    from jaxgate.plugin.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What came up in a worker since it last told.

    Attributes:
        verdicts: Of cases that were judged to the end.
        tests: Which test has which case.
        costs: What gates took, by test.
        dates: Of the stored programs, by case.
        scalars: Metrics for TensorBoard, by case.
        taken: Cases that left a bundle.
        left: Cases that were not profiled because enough were.
        problems: Why there are no bundles, or no lock.
        notes: About calibrations that cannot be used.
        profiled: How many cases were profiled.
        accused: How many tests failed because the machine is the suspect.
        rows: pytest-benchmark's.
    """

    verdicts: tuple[Verdict, ...] = ()
    tests: Mapping[str, str] = field(default_factory=dict)
    costs: Mapping[str, Cost] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    profiled: int = 0
    accused: int = 0
    rows: tuple[Any, ...] = ()


class Teller:
    """Tells of a worker's run what was not told before.

    Args:
        config: pytest's, of the worker.
        run: The worker's run.
    """

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self._run = run
        self._told: dict[str, Any] = {}
        self._waiting: list[Any] = []
        self._rows = 0

    def news(self) -> News:
        """What came up since the last time. The row of a test that waits for confirmation waits with it."""
        run, captures = self._run, self._run.captures
        rows = [*self._waiting, *benchmarks.rows_since(self._config, self._rows)]
        self._rows += len(rows) - len(self._waiting)
        self._waiting = [row for row in rows if row.fullname in run.suspects]
        return News(
            verdicts=self._since("verdicts", run.verdicts),
            tests=self._new("tests", run.tests_by_case),
            costs=self._new("costs", run.costs),
            dates=self._new("dates", run.dates),
            scalars=self._new("scalars", captures.scalars),
            taken=self._since("taken", captures.taken),
            left=self._since("left", captures.left),
            problems=self._since("problems", captures.problems),
            notes=self._since("notes", run.margins.notes),
            profiled=self._more("profiled", captures.profiled),
            accused=self._more("accused", run.accused),
            rows=tuple(row for row in rows if row.fullname not in run.suspects),
        )

    def _since(self, name: str, items: list[Any]) -> tuple[Any, ...]:
        told = self._more(name, len(items))
        return tuple(items[len(items) - told :])

    def _new(self, name: str, items: Mapping[str, Any]) -> dict[str, Any]:
        known: set[str] = self._told.setdefault(name, set())
        found = {key: value for key, value in items.items() if key not in known}
        known |= set(found)
        return found

    def _more(self, name: str, number: int) -> int:
        before = self._told.get(name, 0)
        self._told[name] = number
        return number - int(before)


def absorb(run: Run, config: pytest.Config, news: News) -> None:
    """Add what a worker tells to the controller's run."""
    run.verdicts += news.verdicts
    for case, test in news.tests.items():
        run.add_name(case, test)
    run.costs |= news.costs
    run.dates |= news.dates
    run.captures.add(news.scalars, taken=news.taken, left=news.left, problems=news.problems, profiled=news.profiled)
    run.margins.notes += [note for note in news.notes if note not in run.margins.notes]
    run.accused += news.accused
    benchmarks.add_rows(config, list(news.rows))


def pack(value: object) -> str:
    """Anything of ours as text, for the way from a worker to its controller and nowhere else."""
    return base64.b64encode(pickle.dumps(value)).decode()


def unpack(text: str, *, load: Callable[[bytes], Any] = pickle.loads) -> Any:
    """What was packed: it comes from a process of this very run, never from a file."""
    return load(base64.b64decode(text))
