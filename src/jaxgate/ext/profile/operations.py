"""Where the time of a step goes, and what takes longer than on the other side. Pure.

Operations of one thread lie within each other: time belongs to the innermost. Where several threads run operations
at once, as the devices of a mesh do, each moment is divided among them. What is left when none runs is a gap, named
after the operation before it: some kernels do most of their work after their own event has ended. So the rows of a
step add up to the step.

Communication is exposed while a device moves data and computes nothing. A gradient exchange that runs beside the
backward pass costs nothing; what is exposed makes the step longer. Only an accelerator's profile says which device an
operation ran on: for virtual CPU devices this means nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from statistics import fmean

from jaxgate.ext.profile.model import Communication, OpRow, OpTable, Side, Span, StepTimes

Interval = tuple[float, float]
Part = tuple[float, float, Span]
"""Begin and end in nanoseconds, and the innermost operation that a thread ran meanwhile."""
FLOOR_NS = 1_000
"""Of a row, whatever two halves of the steps say: the profiler's own events take about that."""
BEFORE = "before the first operation"
GAP = "gap after "


def divide(spans: Iterable[Span], begin_ns: float, end_ns: float) -> StepTimes:
    """Divide the wall time of a step among its operations, of all threads.

    The result was there at ``end_ns``; what ran later belongs to another step.
    """
    parts = list(_parts(spans, begin_ns, end_ns))
    changes: list[tuple[float, int, int, str]] = []
    for begin, end, span in parts:
        changes += [(begin, 1, span.thread, span.name), (end, 0, span.thread, span.name)]
    times: defaultdict[str, float] = defaultdict(float)
    running: dict[int, str] = {}
    at, last = begin_ns, BEFORE
    for moment, starts, thread, name in [*sorted(changes), (end_ns, 1, -1, "")]:
        for owner in running.values() or [last]:
            times[owner] += (moment - at) / max(1, len(running))
        at = moment
        if starts:
            running[thread] = name
        else:
            running.pop(thread, None)
            last = f"{GAP}{name}"
    return StepTimes(
        wall_ns=end_ns - begin_ns,
        times_ns={name: time for name, time in times.items() if time > 0},
        communication=_communication(parts),
    )


def typical(steps: Sequence[StepTimes]) -> StepTimes:
    """The mean of the quicker half of the steps: others were interrupted.

    Raises:
        ValueError: If there is none.
    """
    if not steps:
        raise ValueError("expected a step in the profile, found none")
    quick = sorted(steps, key=lambda step: step.wall_ns)[: max(1, (len(steps) + 1) // 2)]
    means = _means(quick)
    halves = _means(quick[::2]), _means(quick[1::2])
    names = means if len(quick) > 1 else ()
    apart = [abs(halves[0].get(name, 0.0) - halves[1].get(name, 0.0)) for name in names]
    moving = [step.communication for step in quick if step.communication is not None]
    typically = StepTimes(
        wall_ns=fmean(step.wall_ns for step in quick), times_ns=means, floor_ns=max([FLOOR_NS, *apart])
    )
    if len(moving) < len(quick):  # of one of them it is not known
        return typically
    total_ns, exposed_ns = fmean(one.total_ns for one in moving), fmean(one.exposed_ns for one in moving)
    return replace(typically, communication=Communication(total_ns=total_ns, exposed_ns=exposed_ns))


def _means(steps: Sequence[StepTimes]) -> dict[str, float]:
    names = sorted({name for step in steps for name in step.times_ns})
    return {name: fmean(step.times_ns.get(name, 0.0) for step in steps) for name in names}


def compare(now: StepTimes, other: StepTimes | None, lines: Mapping[str, str], *, side: Side | None = None) -> OpTable:
    """Put two typical steps side by side; ``other`` is ``None`` where only today's was profiled.

    An operation that only one side has stands beside those of the same scope that only the other has, else beside
    those of the same primitive: a fusion is named after its last operation, a loop that was unrolled loses its scope.
    """
    theirs = {} if other is None else other.times_ns
    groups = _matched(now.times_ns, theirs)
    rows = [
        OpRow(
            name=name,
            line=lines.get((*ours, *others)[0].removeprefix(GAP), ""),
            now_ns=sum(now.times_ns.get(each, 0.0) for each in ours),
            other_ns=sum(theirs.get(each, 0.0) for each in others),
            gap=name.startswith((GAP, BEFORE)),
        )
        for name, ours, others in groups
    ]
    floor = now.floor_ns if other is None else max(now.floor_ns, other.floor_ns)
    shown = [row for row in rows if abs(row.more_ns) > floor]
    folded = [row for row in rows if abs(row.more_ns) <= floor]
    return OpTable(
        other="" if other is None or side is None else side,
        now_ns=now.wall_ns,
        other_ns=0.0 if other is None else other.wall_ns,
        floor_ns=floor,
        rows=tuple(sorted(shown, key=lambda row: (-abs(row.more_ns), row.name))),
        folded=len(folded),
        folded_now_ns=sum(row.now_ns for row in folded),
        folded_other_ns=sum(row.other_ns for row in folded),
        communication=now.communication,
        other_communication=None if other is None else other.communication,
    )


def _matched(
    ours: Mapping[str, float], theirs: Mapping[str, float]
) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Rows as a name, the operations of today's side and those of the other."""
    for name in ours:
        if name in theirs:
            yield name, (name,), (name,)
    new = [name for name in ours if name not in theirs]
    gone = [name for name in theirs if name not in ours]
    for alike in (_scope, _primitive):
        kinds = {alike(name) for name in new} & {alike(name) for name in gone} - {""}
        for kind in sorted(kinds):
            come = sorted((name for name in new if alike(name) == kind), key=lambda name: -ours[name])
            went = [name for name in gone if alike(name) == kind]
            new = [name for name in new if name not in come]
            gone = [name for name in gone if name not in went]
            more = f" and {len(come) - 1} more" if len(come) > 1 else ""
            yield come[0] + more, come, went
    yield from ((name, (name,), ()) for name in new)
    yield from ((f"{name} (gone)", (), (name,)) for name in gone)


def _scope(name: str) -> str:
    return "" if name.startswith(GAP) else name.rpartition("/")[0]


def _primitive(name: str) -> str:
    return (GAP if name.startswith(GAP) else "") + name.rpartition("/")[2]


def innermost(spans: Iterable[Span]) -> Iterator[Part]:
    """Parts of one thread's time, each with the innermost operation that ran; ``spans`` are by begin, outer ones first."""
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


def _parts(spans: Iterable[Span], begin_ns: float, end_ns: float) -> Iterator[Part]:
    """The parts of a step, thread by thread: by their begin, outer operations first."""
    ordered = sorted(spans, key=lambda span: (span.thread, span.begin_ns, -span.end_ns))
    for _, own in groupby(ordered, attrgetter("thread")):
        for begin, end, span in innermost(own):
            if max(begin, begin_ns) < min(end, end_ns):
                yield max(begin, begin_ns), min(end, end_ns), span


def _communication(parts: Iterable[Part]) -> Communication | None:
    """Communication of one step, as the mean of its devices; ``None`` where no operation says which device it ran on."""
    moving: defaultdict[int, list[Interval]] = defaultdict(list)
    computing: defaultdict[int, list[Interval]] = defaultdict(list)
    for begin, end, span in parts:
        if span.device is not None:
            (moving if span.collective else computing)[span.device].append((begin, end))
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


def _length(intervals: Iterable[Interval]) -> float:
    """Length of the spans' union."""
    length, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        length += max(0.0, end - max(begin, until))
        until = max(until, end)
    return length
