"""What a run will cost, without running anything; and the memory that this is told from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jaxgate.model.cost import Cost, Prediction

KEY = "jaxgate/costs"
"""Where pytest's cache keeps what each gate took the last time."""


def remember(config: pytest.Config, costs: Mapping[str, Cost]) -> None:
    """Keep what the gates of this run took; a duel that was not run this time keeps its last cost."""
    cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
    if cache is None or not costs:
        return
    known = recall(config)
    for test, cost in costs.items():
        before = known.get(test)
        duel_s = cost.duel_s if cost.duel_s is not None or before is None else before.duel_s
        known[test] = Cost(unchanged_s=cost.unchanged_s, duel_s=duel_s)
    cache.set(KEY, {test: {"unchanged_s": cost.unchanged_s, "duel_s": cost.duel_s} for test, cost in known.items()})


def recall(config: pytest.Config) -> dict[str, Cost]:
    """What the gates took the last time; an entry that makes no sense is forgotten."""
    cache = getattr(config, "cache", None)
    stored = None if cache is None else cache.get(KEY, None)
    if not isinstance(stored, dict):
        return {}
    found = {}
    for test, entry in stored.items():
        if isinstance(entry, dict) and _is_time(entry.get("unchanged_s")):
            duel_s = entry.get("duel_s")
            found[test] = Cost(unchanged_s=entry["unchanged_s"], duel_s=duel_s if _is_time(duel_s) else None)
    return found


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0


class Planner:
    """Stands in for the loop that runs the tests.

    Args:
        baselines: Folder of the stored baselines, for tests that have not been run here.
    """

    def __init__(self, baselines: Path) -> None:
        self._baselines = baselines
        self._predictions: list[Prediction] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Predict instead of running; a bare collection and one with errors, which runs nothing, are pytest's."""
        option = session.config.option
        if option.collectonly or (session.testsfailed and not option.continue_on_collection_errors):
            return None
        tests = [item.nodeid for item in session.items if "gate" in getattr(item, "fixturenames", ())]
        if tests:
            from jaxgate.plugin.estimate import predict  # noqa: PLC0415 - reads baselines; runs without gates need not

            self._predictions = predict(tests, recall(session.config), self._baselines)
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A plan without a gate is no plan, as a run without a test is none."""
        if exitstatus == pytest.ExitCode.OK and not self._predictions and not session.config.option.collectonly:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the plan."""
        if not self._predictions:
            return
        from jaxgate.report.plan import plan_table  # noqa: PLC0415 - only where there is one

        terminalreporter.section("jaxgate: plan, nothing was run", sep="-")
        terminalreporter.write(plan_table(self._predictions) + "\n")
