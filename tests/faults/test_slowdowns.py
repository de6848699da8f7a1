"""Planted slow-downs, profiled by a real run: the first culprit is what was planted."""

import pytest
from support.corpora import nightly

from tests.faults.runner import run_slowdowns
from tests.faults.slowdowns import FAULTS

pytestmark = nightly


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """What came of each slow-down, and what the run printed."""
    return run_slowdowns(FAULTS, tmp_path_factory.mktemp("slowdowns"))


def test_the_first_culprit_is_what_was_planted(profiled):
    """Of eleven kinds in twelve, and of all where fewer are tried; the others are named."""
    outcomes, out = profiled
    assert len(outcomes) == len(FAULTS)
    assert all(outcome.caught for outcome in outcomes), out
    wrong = {outcome.name: outcome.line for outcome in outcomes if not outcome.blamed}
    assert len(wrong) <= len(FAULTS) // 10, wrong


def test_every_one_is_profiled(profiled):
    """None is red without a profile, and none leaves a note that it could not be read."""
    outcomes, out = profiled
    assert out.count("/report.md\n") == len(outcomes), out
    assert f"{len(outcomes)} bundle" in out
