"""What the gate of a test costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Wall time of one gate, in seconds.

    Attributes:
        unchanged_s: Everything but a duel.
        duel_s: A duel with the baseline's program; ``None`` where none has been run yet.
    """

    unchanged_s: float
    duel_s: float | None


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
