"""How one fact or phase gates; ``jaxgate.judge`` has the policy of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

EVERYWHERE = "everywhere"


@dataclass(frozen=True, slots=True)
class FactPolicy:
    """How one fact gates.

    A fact is worse when it lies beyond ``baseline * (1 ± relative) ± absolute``.
    """

    name: str  # field of `Facts` or `Phases`
    relative: float = 0.0  # share of the baseline that it may move
    absolute: int = 0  # units that it may move besides
    _: KW_ONLY
    better: Literal["lower", "higher"] = "lower"  # which way is better
    why: str  # why it gates, and why this tolerance
    where: str = EVERYWHERE  # where it is known and gates
    within: tuple[str, ...] = ()  # entries of the environment that must be the baseline's for it to be compared
    # whether some subjects cannot be measured so every time: unknown today is undecided then, not INVALID
    unsteady: bool = False

    def other_within(self, now: Mapping[str, str], before: Mapping[str, str]) -> str:
        """Name what makes two environments differ in what must be the same to compare; empty if nothing does."""
        return next((name for name in self.within if now.get(name) != before.get(name)), "")

    def worst_allowed(self, baseline: int) -> float:
        """The worst value that still passes."""
        sign = 1 if self.better == "lower" else -1
        return baseline + sign * (self.relative * baseline + self.absolute)

    def best_expected(self, baseline: int) -> float:
        """The best value that still counts as the same."""
        sign = -1 if self.better == "lower" else 1
        return baseline + sign * (self.relative * baseline + self.absolute)

    def is_worse(self, now: int, baseline: int) -> bool:
        """Whether today's value is beyond what is allowed."""
        limit = self.worst_allowed(baseline)
        return now > limit if self.better == "lower" else now < limit

    def is_better(self, now: int, baseline: int) -> bool:
        """Whether today's value is a win worth a tighter baseline."""
        limit = self.best_expected(baseline)
        return now < limit if self.better == "lower" else now > limit
