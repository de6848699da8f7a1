"""What real peaks say: one line for each case."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from jaxgate.model import AllocatorPeak, PeakRecord, plural
from jaxgate.report.table import headed
from jaxgate.report.units import show, show_ratio


class PeakOutcome(StrEnum):
    """What came of a case; the one that needs a person last."""

    MEASURED = "MEASURED"
    SKIPPED = "SKIPPED"
    UNAVAILABLE = "UNAVAILABLE"
    FAILED = "FAILED"


def outcome_of(record: PeakRecord) -> PeakOutcome:
    """What came of one case."""
    if record.failed:
        return PeakOutcome.FAILED
    if record.peak is None:
        return PeakOutcome.UNAVAILABLE
    return PeakOutcome.MEASURED


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
        parts.append("the compiler reports no peak")
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
        parts.append(f"{peak.allocations:,} allocations in {plural(peak.calls, 'call')}")
    return parts


def _pool(now: int, most: int | None) -> str:
    grown = f", {show('pool_bytes', most)} at most" if most is not None and most != now else ""
    return f"pool {show('pool_bytes', now)}{grown}"


def peak_table(rows: Sequence[tuple[PeakOutcome, PeakRecord]]) -> list[tuple[PeakOutcome, str, str]]:
    """One line for each case, aligned: its outcome, the padded word to colour, and the rest."""
    lines = headed(
        [(outcome, record.case) for outcome, record in rows], texts=[describe_peak(record) for _, record in rows]
    )
    return [(outcome, *line) for (outcome, _), line in zip(rows, lines, strict=True)]
