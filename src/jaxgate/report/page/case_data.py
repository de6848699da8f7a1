"""The numbers of all cases as compact JSON: with 2,000 of them a page must stay small, and open at once.

The page's script builds what is seen of a case when somebody opens it. Of the baseline and of the reference only what
differs from today's numbers is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxgate.model import CaseRecord, Figures
from jaxgate.report.page.case_table import Row

_DIGITS = 4
"""Of the time of a single call: more than a chart shows."""
MOST_CALLS = 60
"""Strokes in one line of a chart; of more calls every so manieth is drawn."""
MOST_TEXT = 1_500_000
"""Characters of failure texts and differences of programs on a page: the bundles have them whole."""
MOST_LINES = 400
"""Of one difference."""
LEFT_OUT = "left out here, because this page would be too large; the bundle of the case has it"


class TextBudget:
    """How much of the long texts a page still has room for; what comes first is shown first."""

    def __init__(self, characters: int = MOST_TEXT) -> None:
        self._left = characters

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


def case_data(rows: Sequence[Row], *, already: Mapping[str, Any], budget: TextBudget) -> dict[str, Any]:
    """All cases, in the order of the table.

    Args:
        rows: The rows of the table.
        already: Keys of the cases whose words stand on the page.
        budget: Room for the words of the others.
    """
    names: dict[str, int] = {}
    environments: list[Mapping[str, str]] = []
    cases = []
    for row in rows:
        case = row.case
        one: dict[str, Any] = {"test": case.test, "baseline": case.baseline, "time": case.time.reason}
        if row.bundle:
            one |= {"bundle": row.bundle, "page": row.page}
        if row.key not in already:
            one |= {
                "text": budget.text(case.text),
                "causes": list(case.causes),
                "changes": budget.lines(case.changes),
                "buffers": budget.lines(case.allocations),
            }
        one |= _duel(case)
        if case.figures is not None:
            one |= _figures(case.figures, names, environments)
        cases.append({key: value for key, value in one.items() if value not in ("", [], None, {})})
    return {"names": list(names), "environments": [dict(one) for one in environments], "cases": cases}


def _duel(case: CaseRecord) -> dict[str, Any]:
    time = case.time
    if time.ratio is None:
        return {}
    numbers = (time.ratio, time.low, time.high, time.margin, time.sees, time.pairs)
    shown = [None if number is None else round(number, 5) for number in numbers]
    return {"duel": shown, "confirmed": [round(ratio, 4) for ratio in time.confirmed]}


def _figures(figures: Figures, names: dict[str, int], environments: list[Mapping[str, str]]) -> dict[str, Any]:
    """Today's numbers as pairs of a place among the names and a value; of the others what differs, ``null`` for unknown."""
    for side in (figures.now, figures.stored, figures.reference):
        for name in side:
            names.setdefault(name, len(names))
    if figures.environment and figures.environment not in environments:
        environments.append(figures.environment)
    found: dict[str, Any] = {"now": _pairs(figures.now, names)}
    if figures.stored:
        found["stored"] = _apart(figures.now, figures.stored, names)
    if figures.reference:
        found["reference"] = _apart(figures.now, figures.reference, names)
    if figures.environment:
        found["environment"] = environments.index(figures.environment)
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


def _calls(times: Sequence[float]) -> list[float]:
    step = max(1, -(-len(times) // MOST_CALLS))
    return [_number(float(f"{time:.{_DIGITS}g}")) for time in times[::step]]
