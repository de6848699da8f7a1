"""A level that runs are observed at, each with its error, and that moves by the error of a link.

The filter of the local-level model (Durbin and Koopman, Time Series Analysis by State Space Methods, 2). Its innovations are
independent, so that their squares add up to a misfit, and a regression on them is generalised least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt


@dataclass(frozen=True, slots=True)
class Level:
    """An estimate: its mean and variance; of infinite variance before the first run."""

    mean: float = 0.0
    variance: float = inf

    def observe(self, value: float, own: float) -> Level:
        """The level after one more observation of that variance."""
        if self.variance == inf:
            return Level(value, own)
        share = self.variance / (self.variance + own)
        return Level(self.mean + share * (value - self.mean), self.variance * (1 - share))

    def loosened(self, variance: float) -> Level:
        """The level after a link of that variance."""
        return Level(self.mean, self.variance + variance)

    def apart(self, after: Level) -> tuple[float, float]:
        """How far a later level is from this one, and how many standard errors that is."""
        move = after.mean - self.mean
        return move, abs(move) / sqrt(self.variance + after.variance) if move else 0.0


class Line:
    """A level with a slope, and how well both fit."""

    def __init__(self, value: float, variance: float) -> None:
        self._level, self._run, self._variance = value, 0.0, variance
        self._products = self._squares = self._misfit = 0.0

    def loosen(self, variance: float) -> None:
        """Let the level move by so much."""
        self._variance += variance

    def observe(self, value: float, run: float, own: float) -> None:
        """Take a value, and at which run it is."""
        moved, away, total = value - self._level, run - self._run, self._variance + own
        self._misfit += moved * moved / total
        self._products += moved * away / total
        self._squares += away * away / total
        share = self._variance / total
        self._level, self._run, self._variance = self._level + moved * share, self._run + away * share, own * share

    @property
    def slope(self) -> float:
        """Of a run."""
        return self._products / self._squares if self._squares else 0.0

    @property
    def sure(self) -> float:
        """How many standard errors the slope is."""
        return abs(self._products) / sqrt(self._squares) if self._squares else 0.0

    @property
    def misfit(self) -> float:
        """Sum of squared innovations without a slope; with one it is less by the square of ``sure``."""
        return self._misfit
