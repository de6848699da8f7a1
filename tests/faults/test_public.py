"""Regressions that people reported: each rebuilt from its description, red, and blamed on what its fix changed."""

import pytest
from support.corpora import one_of

from tests.faults.model import REPOSITORY
from tests.faults.public import NOT_REBUILT, REGRESSIONS, SOURCES, can_compile
from tests.faults.runner import run

LEAST = 15
"""Reports that the corpus must have, of several projects."""


@pytest.mark.parametrize("one", one_of([pytest.param(one, id=str(one.fault)) for one in REGRESSIONS], 3))
def test_a_reported_regression_is_red_and_blamed_on_what_was_fixed(bench, one):
    """By a fact that it moves; the first clause names the cause."""
    if not can_compile(one):
        pytest.skip(f"the compiler of {one.target} is not installed")
    outcome = run([one.fault], target=one.target).faults[0] if one.target else bench.plant(one.fault)
    assert outcome.caught, outcome
    assert outcome.blamed, outcome


def test_there_are_enough_of_several_projects_each_from_its_report():
    """No source without a report, none twice, and reasons for those that are left out."""
    assert len(REGRESSIONS) >= LEAST
    assert len({one.project for one in REGRESSIONS}) >= 8
    assert len({one.url for one in REGRESSIONS}) == len(REGRESSIONS)
    assert {file.stem for file in (REPOSITORY / SOURCES).glob("*.py")} == {one.fault.case for one in REGRESSIONS}
    assert all(NOT_REBUILT.values())
    assert not {one.url for one in REGRESSIONS} & set(NOT_REBUILT)


def test_the_page_has_every_report():
    """``python -m tests.faults.public --markdown docs/regressions.md`` writes it."""
    text = (REPOSITORY / "docs/regressions.md").read_text(encoding="utf-8")
    assert [one.url for one in REGRESSIONS if one.url not in text] == []
    assert [url for url in NOT_REBUILT if url not in text] == []
