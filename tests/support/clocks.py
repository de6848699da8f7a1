"""A clock that no machine makes faster or slower."""

from __future__ import annotations


class Ticking:
    """Every reading is this much later than the one before."""

    def __init__(self, step: int = 1000) -> None:
        self.now, self.step = 0, step

    def __call__(self) -> int:
        """The next reading, in ns."""
        self.now += self.step
        return self.now
