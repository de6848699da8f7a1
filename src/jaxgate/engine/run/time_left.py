"""How far a run is, and how long the rest will take by what its gates took the last time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from jaxgate.model import Cost

_MINUTE_S = 60
_KNOWN = 0.5
"""Share of the tests whose cost must be known: then those that are not are taken for usual ones."""


class TimeLeft:
    """Says in a few words how far a run is.

    Args:
        selected: The tests that gate, by their node ids.
        costs: What their gates took the last time, as far as it is known.
        begun: Gives the tests of which a gate was called.
    """

    def __init__(
        self, selected: Collection[str], costs: Mapping[str, Cost], begun: Callable[[], Collection[str]]
    ) -> None:
        self._selected = frozenset(selected)
        self._costs = costs
        self._begun = begun

    def __call__(self) -> str:
        """``35 of 246 gates, about 2 min left``; empty for a single one."""
        count = len(self._selected)
        if count < 2:  # noqa: PLR2004 - one is no run
            return ""
        left = self._selected - frozenset(self._begun())
        seconds = self._seconds(left)
        about = "" if seconds is None else f", about {_words(seconds)} left"
        return f"{count - len(left)} of {count} gates{about}"

    def _seconds(self, left: Collection[str]) -> float | None:
        known = [self._costs[test].unchanged_s for test in left if test in self._costs]
        if not left or len(known) < _KNOWN * len(left):
            return None
        return sum(known) / len(known) * len(left)


def _words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 2 * _MINUTE_S else f"{seconds / _MINUTE_S:.0f} min"
