"""Eleven planted slow-downs, profiled by a real run: the first culprit is what was planted."""

from __future__ import annotations

import pytest

from tests.faults.runner import run_slowdowns
from tests.faults.slowdowns import FAULTS

RIGHT = 10
"""Of eleven, at least."""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """What came of each slow-down, and what the run printed."""
    return run_slowdowns(FAULTS, tmp_path_factory.mktemp("slowdowns"))


def test_the_first_culprit_is_what_was_planted(profiled):
    """In at least ten of eleven kinds; the others are named."""
    outcomes, out = profiled
    assert len(outcomes) == len(FAULTS) == 11
    assert all(outcome.caught for outcome in outcomes), out
    wrong = {outcome.name: outcome.line for outcome in outcomes if not outcome.blamed}
    assert len(wrong) <= len(outcomes) - RIGHT, wrong


def test_every_one_is_profiled(profiled):
    """None is red without a profile, and none leaves a note that it could not be read."""
    outcomes, out = profiled
    assert out.count("/report.md\n") == len(outcomes), out
    assert "11 bundles in perf-artifacts" in out
