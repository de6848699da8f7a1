"""The time that all duels of a run may take together."""

from __future__ import annotations


class DuelBudget:
    """Counts what duels take.

    Args:
        budget_s: Seconds that all duels together may take; ``None`` for no limit.
    """

    def __init__(self, budget_s: float | None) -> None:
        self._budget_ns = None if budget_s is None else budget_s * 1e9
        self._spent_ns = 0

    @property
    def is_left(self) -> bool:
        """Whether another duel may begin."""
        return self._budget_ns is None or self._spent_ns < self._budget_ns

    def charge(self, spent_ns: int) -> None:
        """Count what a duel took."""
        self._spent_ns += spent_ns
