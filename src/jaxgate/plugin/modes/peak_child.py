"""The fresh process of ``--perf-peak``: what one gate of its test does instead of judging."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from jaxgate.keep import read_record, write_record
from jaxgate.model import Case, InvalidCaseError, PeakRecord, Verdict
from jaxgate.observe.memory import measure_peak
from jaxgate.plugin.gated_test import GatedTest, nothing_decided
from jaxgate.settings.variables import PEAK_AFTER, PEAK_INTO


def leave_peak(case: Case, into: Path, test: GatedTest) -> Verdict:
    """Measure the peak of a case and write it down, if it is this one's turn; the allocator keeps one peak a process.

    Red in any case: should somebody set the variable by hand, no gate may look as if it had judged.

    Args:
        case: The case; its arguments may be consumed.
        into: Where to write it.
        test: The test, of which it is the last call so far.

    Raises:
        pytest.fail.Exception: Always, at once or at the end of the test.
    """
    turn = test.calls - int(os.environ.get(PEAK_AFTER, "0"))
    if turn == 1:
        try:
            record = measure_peak(case.name, case.build)
        except InvalidCaseError as error:
            record = PeakRecord(case=case.name, why_not=str(error), failed=True)
        write_record(into, record)
    known = read_record(into, PeakRecord) if turn > 1 else None
    if known is not None:
        write_record(into, replace(known, more=True))
    what = "its peak was measured, nothing was judged" if turn == 1 else "nothing was measured or judged"
    test.fail(case.name, f"{case.name}: {PEAK_INTO} is set: {what}")
    return nothing_decided(case.name, None, "measuring peaks")
