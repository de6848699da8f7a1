"""Claims that a release is known to break, in pytest's own words: xfailed, or xpassed where they hold after all."""

from __future__ import annotations

import pytest

from jaxgate.model import Verdict
from jaxgate.report.expected import expected_failures, unexpected_passes


def tell_expected(report: pytest.TestReport, verdict: Verdict) -> None:
    """Turn a passed report into an expected failure or an unexpected pass, if any of its claims is one.

    Neither fails the run: the one is known, the other is a win that asks for its ``known_break`` to be removed.
    """
    broken, held = expected_failures(verdict), unexpected_passes(verdict)
    if broken:
        report.outcome = "skipped"
    if broken or held:
        report.wasxfail = "; ".join([*broken, *held])
