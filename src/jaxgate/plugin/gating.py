"""Whether a run gates. What gates need is loaded when that is known: most runs of pytest have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jaxgate.plugin.gating_run import GatingRun

_RUN = pytest.StashKey["GatingRun"]()


def gating_run(config: pytest.Config) -> GatingRun | None:
    """The run, if it gates as far as is known."""
    return config.stash.get(_RUN, None)


def begin(config: pytest.Config) -> GatingRun:
    """Make this a run that gates: such a test was collected, or an option asks for more than to run tests.

    Raises:
        pytest.UsageError: If what an option names is not there.
    """
    if _RUN not in config.stash:
        from jaxgate.plugin.gating_run import GatingRun  # noqa: PLC0415 - what only gates need

        config.stash[_RUN] = GatingRun(config)
    return config.stash[_RUN]
