"""The numbers of all cases as compact JSON: with 2,000 of them a page must stay small, and open at once.

The page's script builds what is seen of a case when somebody opens it. Of the baseline and of the reference only what
differs from today's numbers is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxgate.model import CaseRecord, Figures
from jaxgate.report.page.case_table import Row

_DIGITS = 4
"""Of the time of a single call: more than a chart shows."""
MOST_CALLS = 60
"""Strokes in one line of a chart; of more calls every so manieth is drawn."""
MOST_TEXT = 1_500_000
"""Characters of failure texts and differences of programs on a page: the bundles have them whole."""
_LEAST_TEXT = 300_000
_BYTES_OF_A_CASE = 600
"""By so much less: 2,000 cases, each with calls of two sides, have 4.4 MB with the library, and 5 MB are the limit."""
MOST_LINES = 400
"""Of one difference."""
LEFT_OUT = "left out here, because this page would be too large; the bundle of the case has it"


class TextBudget:
    """How much of the long texts a page still has room for; what comes first is shown first."""

    def __init__(self, characters: int = MOST_TEXT) -> None:
        self._left = characters

    @classmethod
    def beside(cls, cases: int) -> TextBudget:
        """What is left beside the rows and the figures of so many cases."""
        return cls(max(_LEAST_TEXT, MOST_TEXT - cases * _BYTES_OF_A_CASE))

    def lines(self, lines: Sequence[str]) -> list[str]:
        """The first lines of a text that there is room for, with a word about the rest."""
        shown: list[str] = []
        for line in lines[:MOST_LINES]:
            if len(line) > self._left:
                self._left = 0
                break
            self._left -= len(line)
            shown.append(line)
        left = len(lines) - len(shown)
        return [*shown, f"… {left} more lines {LEFT_OUT}"] if left else shown

    def text(self, text: str) -> str:
        """The same of a text in one piece."""
        return "\n".join(self.lines(text.splitlines()))


def case_data(
    rows: Sequence[Row], environments: Sequence[Mapping[str, str]], *, already: Mapping[str, Any], budget: TextBudget
) -> dict[str, Any]:
    """All cases, in the order of the table.

    Args:
        rows: The rows of the table.
        environments: Those of the page, in the order in which it numbers them.
        already: Keys of the cases whose words stand on the page.
        budget: Room for the words of the others.
    """
    names: dict[str, int] = {}
    shared = Shared()
    numbers = {_sorted(one): place for place, one in enumerate(environments)}
    cases = []
    for row in rows:
        case = row.case
        one: dict[str, Any] = {"test": case.test}
        one |= {
            key: shared.place(text) for key, text in (("baseline", case.baseline), ("time", case.time.reason)) if text
        }
        if row.bundle:
            one |= {"bundle": row.bundle, "page": row.page}
            one |= {"logdir": shared.place(row.logdir)} if case.profiled else {}
        if row.key not in already:
            one |= {
                "text": budget.text(case.text),
                "causes": list(case.causes),
                "changes": budget.lines(case.changes),
                "buffers": budget.lines(case.allocations),
            }
        one |= _duel(case)
        if case.figures is not None:
            one |= _figures(case.figures, names, shared)
            if len(environments) > 1 and case.figures.environment:
                one["environment"] = numbers[_sorted(case.figures.environment)]
        cases.append({key: value for key, value in one.items() if value not in ("", [], None, {})})
    return {
        "names": list(names),
        "layouts": [list(layout) for layout in shared.layouts],
        "words": list(shared.words),
        "cases": cases,
    }


@dataclass(slots=True)
class Shared:
    """What many cases have in common stands once: texts, and the names of the figures that a case has."""

    words: dict[str, int] = field(default_factory=dict)
    layouts: dict[tuple[int, ...], int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """The place of a text among those that stand once."""
        return self.words.setdefault(text, len(self.words))


def _sorted(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(environment.items()))


def _duel(case: CaseRecord) -> dict[str, Any]:
    time = case.time
    if time.ratio is None:
        return {}
    numbers = (time.ratio, time.low, time.high, time.margin, time.sees, time.pairs)
    shown = [None if number is None else round(number, 5) for number in numbers]
    return {"duel": shown, "confirmed": [round(ratio, 4) for ratio in time.confirmed]}


def _figures(figures: Figures, names: dict[str, int], shared: Shared) -> dict[str, Any]:
    """Today's numbers after the place of their layout; of the others what differs, ``null`` for unknown."""
    for side in (figures.now, figures.stored, figures.reference):
        for name in side:
            names.setdefault(name, len(names))
    layout = shared.layouts.setdefault(tuple(names[name] for name in figures.now), len(shared.layouts))
    found: dict[str, Any] = {"now": [layout, *map(_number, figures.now.values())]}
    if figures.stored:
        found["stored"] = _apart(figures.now, figures.stored, names)
    if figures.reference:
        found["reference"] = _apart(figures.now, figures.reference, names)
    found |= {"known": (bool(figures.stored) << 1) | bool(figures.reference)}
    if figures.times.now or figures.times.stored:
        found["calls"] = [_calls(figures.times.now), _calls(figures.times.stored), int(figures.times.in_turn)]
    return found


def _pairs(side: Mapping[str, float], names: Mapping[str, int]) -> list[float | None]:
    flat: list[float | None] = []
    for name, value in side.items():
        flat += [names[name], _number(value)]
    return flat


def _apart(now: Mapping[str, float], other: Mapping[str, float], names: Mapping[str, int]) -> list[float | None]:
    """What differs from today's, and ``null`` where today's is known and the other's is not."""
    flat = _pairs({name: value for name, value in other.items() if now.get(name) != value}, names)
    for name in now:
        if name not in other:
            flat += [names[name], None]
    return flat


def _number(value: float) -> float:
    """A whole number where it is one; else five digits."""
    return int(value) if value == int(value) else float(f"{value:.5g}")


def _calls(times: Sequence[float]) -> list[int]:
    """A power of ten, how many calls there are, and the times of some of them in that power, of four digits each."""
    step = max(1, -(-len(times) // MOST_CALLS))
    shown = [time for time in times[::step] if math.isfinite(time)]
    power = max(0, math.floor(math.log10(max(shown))) - _DIGITS + 1) if shown and max(shown) > 0 else 0
    return [power, len(times), *(round(time / 10**power) for time in shown)]
