"""Mistakes planted into the catalogue: its families of meshes."""

import pytest
from support.corpora import one_of

from tests.faults.catalogue import FAULTS


@pytest.mark.parametrize("fault", one_of(FAULTS["meshes"], 15))
def test_a_mistake_turns_its_case_red_and_is_its_first_culprit(bench, fault):
    """By a quantity that it moves; the first line names the argument, the operation, the collective, the line."""
    outcome = bench.plant(fault)
    assert outcome.caught, outcome
    assert outcome.blamed, outcome
