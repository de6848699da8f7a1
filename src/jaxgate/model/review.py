"""What came of asking about each case that moved (``--perf-update=review``)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Review:
    """What came of the questions.

    Attributes:
        moved: Cases that moved or failed, in order.
        refused: Of these the ones that no baseline can make right, each with the reason.
        asked: Whether there was a terminal to ask on.
        all_red_accepted: Whether nothing red is left, and the run ends with 0 for that.
    """

    moved: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    asked: bool = False
    all_red_accepted: bool = False
