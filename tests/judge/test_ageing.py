"""Stored programs age: counted by the date of their baseline, warned of a month before jax's promise is over."""

from __future__ import annotations

from datetime import date

import pytest

from jaxgate.judge import Ageing, find_ageing, window_note

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("recorded", "old"),
    [("2026-11-21", False), ("2026-06-24", False), ("2026-06-23", True), ("2025-01-01", True), ("2027-01-01", False)],
)
def test_more_than_150_days(recorded, old):
    """150 days are fine, 151 are not; a date to come is not old."""
    found = find_ageing({"a/b": recorded}, today=TODAY)
    assert found == (Ageing(programs=1, oldest=recorded, case="a/b") if old else None)


def test_the_oldest_is_named():
    """Of several, the count and the oldest; those that are young do not count."""
    recorded = {"a/young": "2026-11-01", "b/old": "2026-05-01", "c/oldest": "2026-04-30", "d/old": "2026-05-01"}
    assert find_ageing(recorded, today=TODAY) == Ageing(programs=3, oldest="2026-04-30", case="c/oldest")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01"])
def test_what_is_no_date_is_old(text):
    """A date that cannot be read does not keep a program young."""
    found = find_ageing({"a/b": "2020-01-01", "c/d": text}, today=TODAY)
    assert found == Ageing(programs=2, oldest=text, case="c/d")


def test_nothing_stored_is_nothing_old():
    """A run whose cases have no stored programs."""
    assert find_ageing({}, today=TODAY) is None


def test_when_the_promise_was_over():
    """180 days count; after them the last day is said."""
    assert window_note("2026-05-25", today=TODAY) == ""
    assert window_note("2026-05-24", today=TODAY) == (
        "recorded on 2026-05-24, it was promised to be readable until 2026-11-20"
    )
    assert window_note("soon", today=TODAY) == "it was recorded on 'soon', which is no date"
