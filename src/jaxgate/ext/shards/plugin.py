"""``--perf-shard``: the tests that other parts have are deselected, when all other plugins have chosen theirs."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heapreplace
from statistics import median

import pytest

from jaxgate.engine.run.gate_cost import predict
from jaxgate.plugin.stash import SETTINGS, TESTS

EACH_S = 0.5
"""What any test takes beside what its baseline says: its file, its fixtures, what JAX keeps of it."""


def configure(config: pytest.Config) -> None:
    """Cut the suite, where that was asked for."""
    if config.stash[SETTINGS].shard is not None:
        config.pluginmanager.register(Cutter(), "jaxgate-shard")


class Cutter:
    """Registered for a run of one part."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of this part. Each machine cuts alike: by the stored baselines, not by what it remembers."""
        number, count = config.stash[SETTINGS].shard or (1, 1)
        names = list(dict.fromkeys(item.nodeid for item in items))
        known = {one.test: one.unchanged_s for one in predict(names, {}, config.stash[SETTINGS].baselines)}
        mine = set(cut(known, count)[number - 1])
        others = [item for item in items if item.nodeid not in mine]
        config.stash[TESTS].elsewhere |= {item.nodeid for item in others}
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.nodeid in mine]


def cut(costs: Mapping[str, float | None], count: int) -> list[list[str]]:
    """Divide tests, the dearest first, each into the part that is the cheapest so far.

    Costs are in seconds; ``None``, where nobody knows, is taken for the median.

    Returns:
        The parts; the tests of each in the order given. The same for the same costs, in whatever order they stand.
    """
    usual = median([cost for cost in costs.values() if cost is not None] or [0.0])
    seconds = {test: EACH_S + (usual if cost is None else cost) for test, cost in costs.items()}
    sums = [(0.0, part) for part in range(count)]
    heapify(sums)
    part_of: dict[str, int] = {}
    for test in sorted(seconds, key=lambda test: (-seconds[test], test)):
        total, part = sums[0]
        part_of[test] = part
        heapreplace(sums, (total + seconds[test], part))
    return [[test for test in costs if part_of[test] == part] for part in range(count)]
