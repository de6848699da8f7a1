"""pytest-benchmark's rows under pytest-xdist: filled in the workers, shown once by the controller.

pytest-benchmark switches itself off there, because plain benchmarks would disturb each other. The times of a gate
were taken with the machine to themselves, so its rows are right. What is used here of pytest-benchmark has no public
interface; ``tests/plugin/test_benchmark_rows.py`` tells when it moves.
"""

from __future__ import annotations

import copy
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

_PLAIN = (str, int, float, bool, type(None))


def switched_off(config: pytest.Config) -> bool:
    """Whether the user, and not pytest-xdist, switched the clock off."""
    return bool(config.getoption("benchmark_disable", False)) and not config.getoption("benchmark_enable", False)


def switch_on(benchmark: Any, config: pytest.Config) -> None:
    """Let the fixture of one test keep its row in a worker."""
    benchmark.disabled = switched_off(config)


def leave_to_controller(config: pytest.Config) -> None:
    """Save nothing from a worker, and warn only of plain benchmarks, which stay switched off."""
    session: Any = config._benchmarksession  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    session.json = session.save = session.autosave = None


def warn_only_of(plain: bool, config: pytest.Config) -> None:  # noqa: FBT001 - a word for a setter
    """Say that benchmarks are switched off only where a test has a plain one."""
    session: Any = config._benchmarksession  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    session.xdist_benchmark_found = session.xdist_benchmark_found and plain


def rows_since(config: pytest.Config, mark: int) -> list[Any]:
    """The rows that were filled in this process after the first so many, fit to travel."""
    return [_portable(row) for row in config._benchmarksession.benchmarks[mark:]]  # type: ignore[attr-defined]  # noqa: SLF001 - see above


def add_rows(config: pytest.Config, rows: list[Any]) -> None:
    """Take rows that were filled elsewhere; the last one of a test counts."""
    kept: list[Any] = config._benchmarksession.benchmarks  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    for row in rows:
        kept[:] = [other for other in kept if other.fullname != row.fullname]
        kept.append(row)


def _portable(row: Any) -> Any:
    """A row without what binds it to its process: the fixture, timers, and parameters that are no plain values."""
    other = copy.copy(row)
    other.fixture = SimpleNamespace(has_error=row.has_error)
    other.options = {
        name: value if isinstance(value, (*_PLAIN, Decimal)) else str(value) for name, value in row.options.items()
    }
    if row.params is not None:  # as its JSON shows them
        other.params = {
            name: value if isinstance(value, _PLAIN) else f"UNSERIALIZABLE[{value!r}]"
            for name, value in row.params.items()
        }
    return other
