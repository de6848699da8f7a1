"""What a run will cost, without running anything; and the memory of earlier costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from jaxgate.engine.run.gate_cost import predict
from jaxgate.model.workload import Cost, Prediction
from jaxgate.plugin.console import Console
from jaxgate.plugin.modes.base import InsteadOfTests
from jaxgate.plugin.stash import SETTINGS
from jaxgate.report.plan import plan_table

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


class Plan(InsteadOfTests):
    """Predicts what the tests would cost, and runs none."""

    title = "jaxgate: plan, nothing was run"

    def __init__(self) -> None:
        self._predictions: list[Prediction] = []

    def carry_out(self, session: pytest.Session, tests: list[str]) -> None:
        """Predict the cost of each test; if it has not been run here, from its baselines."""
        if tests:
            self._predictions = predict(tests, recall(session.config), session.config.stash[SETTINGS].baselines)

    def exit_status(self, exitstatus: int) -> int:
        """A plan without a gate is no plan, as a run without a test is none."""
        planned = exitstatus != pytest.ExitCode.OK or self._predictions
        return exitstatus if planned else pytest.ExitCode.NO_TESTS_COLLECTED

    def results(self) -> object:  # noqa: D102 - see the base
        return self._predictions

    def show(self, out: Console, config: pytest.Config) -> None:
        """Show the plan."""
        del config

        out.write(plan_table(self._predictions) + "\n")
