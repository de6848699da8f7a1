"""What the gate of a test costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Wall time of the gates of one test, in seconds.

    Attributes:
        unchanged_s: Everything but duels.
        duel_s: Duels with the baselines' programs; ``None`` where none has been run yet.
    """

    unchanged_s: float
    duel_s: float | None

    def __add__(self, other: Cost) -> Cost:
        """That of both."""
        duels = [duel_s for duel_s in (self.duel_s, other.duel_s) if duel_s is not None]
        return Cost(unchanged_s=self.unchanged_s + other.unchanged_s, duel_s=sum(duels) if duels else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a test is expected to cost.

    Attributes:
        test: pytest node id.
        unchanged_s: Seconds if the program is the baseline's; ``None`` if nothing is known.
        changed_s: Seconds if it is duelled with; ``None`` if nothing is known.
        unchanged_estimated: Whether the first is worked out from a baseline instead of remembered.
        changed_estimated: The same of the second.
    """

    test: str
    unchanged_s: float | None = None
    changed_s: float | None = None
    unchanged_estimated: bool = False
    changed_estimated: bool = False
