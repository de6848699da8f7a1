"""``--perf-shard``: the tests that other parts have are deselected, when all other plugins have chosen theirs."""

from __future__ import annotations

import pytest

from jaxgate.engine.run.gate_cost import predict
from jaxgate.ext.shards.cut import cut
from jaxgate.plugin.stash import SETTINGS, TESTS


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
