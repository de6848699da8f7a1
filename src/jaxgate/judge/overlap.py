"""How much of a step's communication is exposed: time in which a device moves data and computes nothing. Pure.

A gradient exchange that runs beside the backward pass costs nothing; what is exposed makes the step longer. Only an
accelerator's profile says which device an operation ran on: of virtual CPU devices this tells nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from statistics import fmean

from jaxgate.model import Communication, Span

Interval = tuple[float, float]


def innermost(spans: Iterable[Span]) -> Iterator[tuple[float, float, Span]]:
    """Parts of one thread's time, each with the innermost operation that ran.

    Args:
        spans: Operations of one thread, by their begin, outer ones first.
    """
    open_spans: list[Span] = []
    at = 0.0
    for span in spans:
        while open_spans and open_spans[-1].end_ns <= span.begin_ns:
            inner = open_spans.pop()
            yield at, inner.end_ns, inner
            at = max(at, inner.end_ns)
        if open_spans:
            yield at, span.begin_ns, open_spans[-1]
        open_spans.append(span)
        at = span.begin_ns
    while open_spans:
        inner = open_spans.pop()
        if inner.end_ns > at:
            yield at, inner.end_ns, inner
            at = inner.end_ns


def by_thread(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The operations of each thread, by their begin, outer ones first."""
    ordered = sorted(spans, key=lambda span: (span.thread, span.begin_ns, -span.end_ns))
    return (list(own) for _, own in groupby(ordered, attrgetter("thread")))


def communication(spans: Iterable[Span], begin_ns: float, end_ns: float) -> Communication | None:
    """Communication of one step, as the mean of its devices.

    Args:
        spans: Operations of the step, of all threads.
        begin_ns: When the step began.
        end_ns: When its result was there.

    Returns:
        ``None`` where no operation says which device it ran on.
    """
    moving: defaultdict[int, list[Interval]] = defaultdict(list)
    computing: defaultdict[int, list[Interval]] = defaultdict(list)
    for own in by_thread(span for span in spans if span.device is not None):
        for begin, end, span in innermost(own):
            part = max(begin, begin_ns), min(end, end_ns)
            if part[0] < part[1] and span.device is not None:
                (moving if span.collective else computing)[span.device].append(part)
    devices = sorted({*moving, *computing})
    if not devices:
        return None
    totals = [_length(moving[device]) for device in devices]
    # what two sets have in common: their lengths together, less that of their union
    hidden = [
        total + _length(computing[device]) - _length([*moving[device], *computing[device]])
        for total, device in zip(totals, devices, strict=True)
    ]
    return Communication(total_ns=fmean(totals), exposed_ns=fmean(totals) - fmean(hidden))


def typical_communication(steps: Sequence[Communication | None]) -> Communication | None:
    """The mean of several steps; ``None`` if one of them is not known."""
    known = [step for step in steps if step is not None]
    if not known or len(known) < len(steps):
        return None
    return Communication(
        total_ns=fmean(step.total_ns for step in known), exposed_ns=fmean(step.exposed_ns for step in known)
    )


def _length(intervals: Iterable[Interval]) -> float:
    """Length of the union."""
    length, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        length += max(0.0, end - max(begin, until))
        until = max(until, end)
    return length
