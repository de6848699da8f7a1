"""The mistakes planted into the catalogue: which there are, and that a test plants each."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tests.faults import catalogue
from tests.faults.model import Fault

HERE = Path(__file__).parent


def test_every_family_is_in_one_group_and_every_group_has_its_tests():
    families = [family for group in catalogue.GROUPS.values() for family in group]
    assert sorted(families) == sorted({file.stem for file in (HERE / "catalogue").glob("*.py")} - {"__init__"})
    assert all((HERE / f"test_catalogue_{group}.py").exists() for group in catalogue.GROUPS)


def test_no_two_mistakes_of_a_family_share_a_name():
    names = Counter(map(str, chain.from_iterable(catalogue.FAULTS.values())))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_mistake_fits_its_file():
    """Also those that only the nightly run plants: an edit that its file has outgrown would be found a day later."""
    for fault in chain.from_iterable(catalogue.FAULTS.values()):
        fault.planted()


def test_a_mistake_that_does_not_fit_its_file_is_refused():
    """An edit whose text is not there would plant nothing."""
    fault = Fault(
        name="x", file="workloads/parts.py", case="y", edits=(("nowhere", "z"),), status="INVALID", culprit="x"
    )
    with pytest.raises(ValueError, match=r"expected 'nowhere' once in workloads/parts\.py, found 0"):
        fault.planted()
