"""Charts as SVG: places of lines, points and ticks. Numbers are written as the terminal writes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from jaxgate.ext.page.blocks import Chart, Line

_WIDTH, _HEIGHT, _STRIP = 420, 210, 26
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 24, 10, 30
_LOG_UP, _LOG_ACROSS = 20.0, 8.0
"""Values so many times apart need a logarithmic axis: on a straight one the small ones all look like nothing."""
_MOST_TICKS, _TICKS_OF_POINTS, _TICKS_OF_MOMENTS = 5, 8, 4
_COLOURS = 8
SIDES = {"now": "c1", "baseline": "c2", "reference": "c3"}
"""Colours of the three sides, by the word that a line's name begins with."""


class Point(NamedTuple):
    """A point of a line."""

    x: float
    y: float
    at: str  # where it is, in words: `32 steps`


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    log: bool

    def place(self, value: float) -> float:
        """A value's place, from 0 to 1."""
        low, high, at = (math.log(one) if self.log else one for one in (self.low, self.high, value))
        return 0.5 if high == low else (at - low) / (high - low)

    def right(self, value: float) -> float:
        """Its place on a chart, from the left."""
        return round(_LEFT + self.place(value) * (_WIDTH - _LEFT - _RIGHT), 1)

    def ticks(self) -> list[float]:
        """Round values within, few enough to be read."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]
            inside = [tick for tick in found if self.low <= tick <= self.high]
            return (
                inside
                if len(inside) <= _MOST_TICKS
                else [t for t in inside if f"{t:e}"[0] == "1"][:: 1 + len(powers) // 8]
            )
        rough = (self.high - self.low) / _MOST_TICKS or 1.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * part for part in (1, 2, 5, 10) if power * part >= rough * (1 - 1e-9))
        return [step * n for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def _axis(values: Iterable[float], apart: float, *, zero: bool) -> _Axis:
    known = list(values)
    low, high = min(known), max(known)
    log = low > 0 and high / low >= apart
    return _Axis(min(low, 0.0) if zero and not log else low, high, log)


def line_chart(
    title: str, lines: Mapping[str, Sequence[Point]], *, show: Callable[[float], str], about: str, moments: bool = False
) -> Chart:
    """Lines with points, at least one each, over a number.

    A name that begins with a side has its colour. ``about`` is for who cannot see the lines. Where points are of moments, the
    axis below is straight, and the one beside begins where the values do.
    """
    points = [point for line in lines.values() for point in line]
    across = _axis((point.x for point in points), math.inf if moments else _LOG_ACROSS, zero=False)
    up = _axis((point.y for point in points), _LOG_UP, zero=not moments)

    def down(y: float) -> float:
        return round(_HEIGHT - _BOTTOM - up.place(y) * (_HEIGHT - _TOP - _BOTTOM), 1)

    drawn = []
    for number, (name, line) in enumerate(lines.items()):
        places = [(across.right(point.x), down(point.y), f"{name}, {point.at}: {show(point.y)}") for point in line]
        path = "M" + "L".join(f"{x} {y}" for x, y, _ in places)
        colour = SIDES.get(name.partition(":")[0], f"c{number % _COLOURS + 1}")
        drawn.append(Line(name=name, colour=colour, path=path, points=places))
    marks = {point.x: point.at for point in points}
    every = -(-len(marks) // (_TICKS_OF_MOMENTS if moments else _TICKS_OF_POINTS))
    return Chart(
        title=title,
        label=f"{title} of {about}: {spoken(lines, show)}",
        width=_WIDTH,
        height=_HEIGHT,
        lines=drawn,
        across=[(across.right(x), marks[x].partition(" ")[0]) for x in sorted(marks)[::every]],
        up=[(down(tick), show(tick)) for tick in up.ticks()],
    )


def spoken(lines: Mapping[str, Sequence[Point]], show: Callable[[float], str]) -> str:
    """Each line in words, from its first point to its last."""
    return "; ".join(
        f"{name} from {show(line[0].y)} at {line[0].at} to {show(line[-1].y)} at {line[-1].at}"
        for name, line in lines.items()
    )


def strip_chart(title: str, sides: Mapping[str, Sequence[float]], *, show: Callable[[float], str]) -> Chart:
    """A stroke for each value of each side, none of them empty, and a dot for its median."""
    across = _axis((value for values in sides.values() for value in values), math.inf, zero=False)

    drawn, words, up = [], [], []
    for number, (side, values) in enumerate(sides.items()):
        top = _TOP + number * _STRIP
        path = "".join(f"M{across.right(value)} {top}v{_STRIP - 6}" for value in values)
        middle = median(values)
        said = f"{len(values)} calls, median {show(middle)}, from {show(min(values))} to {show(max(values))}"
        up.append((top + _STRIP / 2 - 3, side))
        dot = (across.right(middle), top + _STRIP / 2 - 3, f"{side}: {said}")
        drawn.append(Line(name=side, colour=SIDES.get(side, "c4"), path=path, points=[dot]))
        words.append(f"{side} {said}")
    return Chart(
        title=title,
        label=f"{title}: {'; '.join(words)}",
        width=_WIDTH,
        height=_TOP + len(sides) * _STRIP + _BOTTOM,
        lines=drawn,
        across=[(across.right(tick), show(tick)) for tick in across.ticks()],
        up=up,
    )
