"""What real peaks say: one line for each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from jaxgate.model.allocator import AllocatorPeak, PeakRecord
from jaxgate.report.units import show, show_ratio


class Outcome(StrEnum):
    """What came of a case; the one that needs a person last."""

    MEASURED = "MEASURED"
    SKIPPED = "SKIPPED"
    UNAVAILABLE = "UNAVAILABLE"
    FAILED = "FAILED"


def outcome_of(record: PeakRecord) -> Outcome:
    """What came of one case."""
    if record.failed:
        return Outcome.FAILED
    if record.peak is None:
        return Outcome.UNAVAILABLE
    return Outcome.MEASURED


def describe_peak(record: PeakRecord) -> str:
    """The peak beside what the compiler said, what the program itself needs, and the state of the pool."""
    peak = record.peak
    if peak is None:
        return record.why_not
    figures = peak.after
    where = figures.device + (f", the fullest of {peak.devices}" if peak.devices > 1 else "")
    reserved = figures.peak_reserved_bytes
    parts = [f"{show('peak_bytes', peak.peak_bytes)} on {where}"]
    parts += [f"at most: {show('peak_bytes', reserved)} of it reserved by programs"] if reserved else []
    if record.predicted_bytes:
        ratio = show_ratio(peak.peak_bytes, record.predicted_bytes)
        parts.append(f"{ratio} the compiler's {show('peak_bytes', record.predicted_bytes)}")
    else:
        parts.append("the compiler tells no peak")
    parts += [_own(peak), *_over_calls(peak)]
    parts.append(f"limit {show('limit_bytes', figures.limit_bytes)}")
    parts += [] if figures.pool_bytes is None else [_pool(figures.pool_bytes, figures.peak_pool_bytes)]
    loose = figures.fragmentation
    parts.append("fragmentation unknown" if loose is None else f"fragmentation {loose:.1%}")
    parts.append(peak.preallocation)
    return " · ".join(parts)


def _own(peak: AllocatorPeak) -> str:
    own = show("own_bytes", peak.own_bytes)
    if peak.by_calls:
        return f"its own {own}"
    return f"its own at most {own}: building or compiling made the peak"


def _over_calls(peak: AllocatorPeak) -> list[str]:
    parts = []
    if peak.first.peak_bytes < peak.peak_bytes:
        parts.append(f"{show('peak_bytes', peak.first.peak_bytes)} after the first of {peak.calls} calls")
    if peak.allocations is not None:
        parts.append(f"{peak.allocations:,} allocations in {peak.calls} call{'' if peak.calls == 1 else 's'}")
    return parts


def _pool(now: int, most: int | None) -> str:
    grown = f", {show('pool_bytes', most)} at most" if most is not None and most != now else ""
    return f"pool {show('pool_bytes', now)}{grown}"


def table(rows: Sequence[tuple[Outcome, PeakRecord]]) -> list[tuple[Outcome, str, str]]:
    """One line for each case, aligned: its outcome, the padded word to colour, and the rest."""
    word_width = max((len(outcome) for outcome, _ in rows), default=0)
    name_width = max((len(record.case) for _, record in rows), default=0)
    return [
        (outcome, f"{outcome:<{word_width}}", f"  {record.case:<{name_width}}  {describe_peak(record)}")
        for outcome, record in rows
    ]


def count_rows(rows: Sequence[tuple[Outcome, PeakRecord]]) -> str:
    """How many cases have each outcome."""
    counts = Counter(outcome for outcome, _ in rows)
    cases = f"{len(rows)} case{'' if len(rows) == 1 else 's'}"
    return f"{cases}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
