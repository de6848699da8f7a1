"""What a search for the first bad revision tried, as a table, and what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxgate.ext.bisect.model import AskedSide, Bisection, Mark, Quantity
from jaxgate.model.words import cut, shortlist
from jaxgate.report.printable import aligned, printable_line
from jaxgate.report.units import show, show_ratio

UNKNOWN = "–"
_MOST = 5


def show_figure(quantity: Quantity, figure: float | None) -> str:
    """A figure of the quantity that a search follows; a time is a ratio to the good side's."""
    if figure is None:
        return UNKNOWN
    return f"{figure:.2f} ×" if quantity.clocked else show(quantity.name, figure)


def likeness(quantity: Quantity, figure: float) -> str:
    """Which side a figure is like."""
    if quantity.is_like_good(figure):
        return "like the good side"
    return "like the bad side" if quantity.is_like_bad(figure) else "like neither side"


def describe_quantity(quantity: Quantity) -> str:
    """What moved between the sides: ``temp_bytes 4.19 MB against 1.05 MB = 4.00 ×``."""
    if quantity.clocked:
        return f"no fact is worse; a call takes {show_figure(quantity, quantity.bad)} the good side's time"
    better = ", which is better: what made it so is searched for" if quantity.gain else ""
    bad, good = show_figure(quantity, quantity.bad), show_figure(quantity, quantity.good)
    ratio = show_ratio(quantity.bad, quantity.good)
    return f"{quantity.name} {bad} against {good}{f' = {ratio}' if ratio else ''}{better}"


def bisection_table(
    found: Bisection,
    quantity: Quantity,
    revisions: Sequence[str],
    *,
    unit: str,
    short: Callable[[str], str],
    width: int | None,
) -> list[str]:
    """All that was measured, from the good side to the bad one, oldest first. ``None`` for ``width`` cuts nothing."""
    order = {revision: place for place, revision in enumerate(revisions)}
    steps = [
        (
            order.get(probe.revision, len(order)),
            (str(number), short(probe.revision), show_figure(quantity, probe.figure), str(probe.mark), probe.why),
        )
        for number, probe in enumerate(found.probes, start=1)
    ]
    good = ("", short(revisions[0]), show_figure(quantity, quantity.good), str(Mark.GOOD), "the good side")
    bad = ("", short(revisions[-1]), show_figure(quantity, quantity.bad), str(Mark.BAD), "the bad side")
    rows = [("step", unit, quantity.name, "is", "decided by"), good, *(row for _, row in sorted(steps)), bad]
    return [cut(line, width) for line in aligned(rows, right=(0, 2))]


def compared_with(quantity: Quantity, asked: AskedSide, unit: str) -> str:
    """Which side each figure was compared with, and what makes one bad."""
    if quantity.clocked:
        return f"each {unit} was compared with the good side: bad is what a duel with its program finds slower or faster as the bad side is"
    if asked == "bad":
        return f"each {unit} was compared with the bad side: bad is what is like it, {show(quantity.name, quantity.bad)} ± {show(quantity.name, quantity.bad_tolerance)}"
    edge = quantity.good + (quantity.good_tolerance if quantity.bad > quantity.good else -quantity.good_tolerance)
    beyond = "more" if quantity.bad > quantity.good else "less"
    return f"each {unit} was compared with the good side: bad is {beyond} than {show(quantity.name, edge)}"


def moved_twice(found: Bisection, quantity: Quantity, asked: AskedSide, short: Callable[[str], str]) -> list[str]:
    """A note on revisions that are like neither side: the figure moved more than once, and the other question has another answer."""
    neither = [
        probe
        for probe in found.probes
        if probe.figure is not None
        and not quantity.clocked
        and not (quantity.is_like_good(probe.figure) or quantity.is_like_bad(probe.figure))
    ]
    if not neither:
        return []
    named = shortlist([f"{short(one.revision)} ({show_figure(quantity, one.figure)})" for one in neither], _MOST)
    other = "bad" if asked == "good" else "good"
    which = "the first that is like the bad side" if other == "bad" else "the first that is unlike the good side"
    return [f"like neither side: {named}; {quantity.name} moved more than once. --compare-with {other} names {which}"]


def first_bad_lines(
    first_bad: Sequence[str], *, unit: str, case: str, gain: bool, describe: Callable[[str], str], skipped: int
) -> list[str]:
    """The answer: one revision, or all that may be it."""
    first = f"the first {'better' if gain else 'bad'} {unit} of {case}"
    if len(first_bad) == 1:
        return [f"{first}: {printable_line(describe(first_bad[0]))}"]
    head = f"{first} is one of {len(first_bad)}, as {skipped} could not be measured:"
    return [head, *(f"  {printable_line(describe(revision))}" for revision in first_bad)]
