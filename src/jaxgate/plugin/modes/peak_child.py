"""The fresh process of ``--perf-peak``: what its one gate does instead of judging."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from jaxgate.keep import write_peak
from jaxgate.model import Case, InvalidCaseError, PeakRecord
from jaxgate.observe.memory import measure_peak
from jaxgate.settings.variables import PEAK_INTO


def leave_peak(case: Case, into: Path) -> NoReturn:
    """Measure the peak of a case, write it down, and end the test.

    Red in any case: should somebody set the variable by hand, no gate may look as if it had judged.

    Args:
        case: The case; its arguments may be consumed.
        into: Where to write it.

    Raises:
        pytest.fail.Exception: Always.
    """
    try:
        record = measure_peak(case.name, case.build)
    except InvalidCaseError as error:
        record = PeakRecord(case=case.name, why_not=str(error), failed=True)
    write_peak(into, record)
    pytest.fail(f"{case.name}: {PEAK_INTO} is set: its peak was measured, nothing was judged", pytrace=False)
