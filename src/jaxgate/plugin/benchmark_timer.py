"""Our samples in pytest-benchmark's table and JSON, through its public interface.

``pedantic`` fixes its rounds in advance and cannot drive a measurement of ours; so the measurement is done
first and its times are replayed through the timer that the ``benchmark`` marker accepts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jaxgate.model import Samples


class ReplayTimer:
    """A timer for one test that returns recorded times, in seconds, start and end in turn."""

    __name__ = "jaxgate.replay"  # pytest-benchmark prints it

    def __init__(self) -> None:
        self._ticks: Iterator[float] = iter(())

    def load(self, samples: Samples) -> None:
        """Replay these bursts from now on."""
        self._ticks = iter([tick for burst_ns in samples.bursts_ns for tick in (0.0, burst_ns / 1e9)])

    def __call__(self) -> float:
        """Return the next tick.

        Raises:
            RuntimeError: If asked for more than was recorded.
        """
        try:
            return next(self._ticks)
        except StopIteration:
            raise RuntimeError("pytest-benchmark asked for more samples than were recorded") from None


_TIMER = pytest.StashKey[ReplayTimer]()


def install(item: pytest.Item) -> None:
    """Give a test its replaying timer, keeping whatever else its ``benchmark`` marker says."""
    timer = ReplayTimer()
    item.stash[_TIMER] = timer
    marker = item.get_closest_marker("benchmark")
    options = dict(marker.kwargs) if marker else {}
    item.add_marker(pytest.mark.benchmark(**{**options, "timer": timer}), append=False)
    # A case that fails before it is sampled leaves its row empty; the verdict says why, a warning adds nothing.
    item.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used at all"))


def replay(item: pytest.Item, benchmark: Any, samples: Samples | None) -> None:
    """Fill the row of a test. Without samples (``--benchmark-disable``) the fixture is only marked as used."""
    rounds = iterations = 1
    if samples is not None:
        item.stash[_TIMER].load(samples)
        rounds, iterations = len(samples.bursts_ns), samples.calls_per_burst
    if samples is None and benchmark.enabled:
        return
    benchmark.pedantic(_nothing, rounds=rounds, iterations=iterations)


def _nothing() -> None:
    """What pytest-benchmark calls while the timer replays."""
