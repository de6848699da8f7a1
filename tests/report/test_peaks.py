"""Real peaks in words: one line for each case, and what is not known is said."""

from __future__ import annotations

from dataclasses import replace

from jaxgate.model import AllocatorFigures, AllocatorPeak, PeakRecord
from jaxgate.report import PeakOutcome, count_outcomes, outcome_of, peak_table
from jaxgate.report.peaks import describe_peak

MB = 10**6
READY = AllocatorFigures(
    device="gpu:0",
    in_use_bytes=100 * MB,
    peak_in_use_bytes=110 * MB,
    reserved_bytes=None,
    peak_reserved_bytes=None,
    limit_bytes=12_700 * MB,
    pool_bytes=200 * MB,
    peak_pool_bytes=200 * MB,
    largest_free_bytes=None,
    allocations=5,
)
FIRST = replace(READY, peak_in_use_bytes=400 * MB, allocations=8)
AFTER = replace(FIRST, pool_bytes=512 * MB, peak_pool_bytes=512 * MB, allocations=14)
PEAK = AllocatorPeak(
    devices=1, before=READY, ready=READY, first=FIRST, after=AFTER, calls=3, preallocation="allocator default"
)
RECORD = PeakRecord(case="model/wave", predicted_bytes=320 * MB, peak=PEAK)


def describe(record=RECORD, **changes):
    """The line of a record whose peak has changed."""
    return describe_peak(replace(record, peak=replace(PEAK, **changes)))


def test_a_gpu():
    """The peak, the compiler's, the program's own, the limit, the pool; fragmentation is not told."""
    assert describe() == (
        "400 MB on gpu:0 · 1.25 × the compiler's 320 MB · its own 300 MB · 9 allocations in 3 calls · "
        "limit 12.7 GB · pool 512 MB · fragmentation unknown · allocator default"
    )


def test_a_tpu():
    """What programs reserve is named, and that the sum is an upper bound."""
    after = replace(
        AFTER,
        device="tpu:3",
        reserved_bytes=250 * MB,
        peak_reserved_bytes=250 * MB,
        pool_bytes=None,
        peak_pool_bytes=None,
        limit_bytes=1000 * MB,
        largest_free_bytes=520 * MB,
        allocations=None,
    )
    found = describe(after=after, first=after, devices=8, preallocation="nothing to preallocate on tpu")
    assert found == (
        "650 MB on tpu:3, the fullest of 8 · at most: 250 MB of it reserved by programs · 2.03 × the compiler's 320 MB "
        "· its own 550 MB · limit 1 GB · fragmentation 20.0% · nothing to preallocate on tpu"
    )


def test_a_peak_that_rises_over_the_calls():
    """The first call's own is told too, and a pool that gave something back."""
    found = describe(after=replace(AFTER, peak_in_use_bytes=450 * MB, peak_pool_bytes=600 * MB), preallocation="told")
    assert "450 MB on gpu:0" in found
    assert "400 MB after the first of 3 calls" in found
    assert "pool 512 MB, 600 MB at most" in found


def test_a_peak_that_no_call_made():
    """What the program needs is then bounded, not known."""
    found = describe(ready=replace(READY, peak_in_use_bytes=400 * MB))
    assert "its own at most 300 MB: building or compiling made the peak" in found


def test_what_is_not_told():
    """Never a ratio to nothing, never a limit of 0."""
    bare = replace(AFTER, limit_bytes=None, pool_bytes=None, peak_pool_bytes=None, allocations=None)
    found = describe(replace(RECORD, predicted_bytes=None), after=bare, first=bare)
    assert found == (
        "400 MB on gpu:0 · the compiler reports no peak · its own 300 MB · limit unknown · fragmentation unknown · "
        "allocator default"
    )


def test_the_table_is_aligned_and_counted():
    """One line for each case, in order."""
    silent = PeakRecord(case="a/b", why_not="unavailable on cpu: its allocator keeps no figures")
    broken = PeakRecord(case="a/c", why_not="tracing the subject: no", failed=True)
    rows = [(outcome_of(record), record) for record in (RECORD, silent, broken)]
    assert [outcome for outcome, _ in rows] == [PeakOutcome.MEASURED, PeakOutcome.UNAVAILABLE, PeakOutcome.FAILED]
    (_, first, rest), (_, second, why), (_, third, _) = peak_table(rows)
    assert (first, second, third) == ("MEASURED   ", "UNAVAILABLE", "FAILED     ")
    assert rest.startswith("  model/wave  400 MB on gpu:0")
    assert why == "  a/b         unavailable on cpu: its allocator keeps no figures"
    outcomes = [outcome for outcome, _ in rows]
    assert count_outcomes(outcomes, PeakOutcome) == "3 cases: 1 MEASURED, 1 UNAVAILABLE, 1 FAILED"
    assert count_outcomes([PeakOutcome.MEASURED], PeakOutcome) == "1 case: 1 MEASURED"
