"""Stored programs age: counted by the date of their baseline, warned of a month before jax's promise is over."""

from datetime import date

import pytest

from jaxgate.judge.ageing import Ageing, find_ageing, window_note

TODAY = date(2026, 11, 21)


SEVERAL = {"a/young": "2026-11-01", "b/old": "2026-05-01", "c/oldest": "2026-04-30", "d/old": "2026-05-01"}


@pytest.mark.parametrize(
    ("recorded", "old", "oldest"),
    [
        ({}, 0, ""),
        ({"a/b": "2026-11-21"}, 0, ""),
        ({"a/b": "2027-01-01"}, 0, ""),
        ({"a/b": "2026-06-24"}, 0, ""),
        ({"a/b": "2026-06-23"}, 1, "a/b"),
        ({"a/b": "2025-01-01"}, 1, "a/b"),
        (SEVERAL, 3, "c/oldest"),
        *[({"a/b": "2020-01-01", "c/d": no_date}, 2, "c/d") for no_date in ("", "yesterday", "2026-13-01")],
    ],
)
def test_more_than_150_days(recorded, old, oldest):
    """150 days are fine, 151 are not, nor is what cannot be read; how many are old, and the oldest by name."""
    expected = Ageing(programs=old, oldest=recorded[oldest], case=oldest) if old else None
    assert find_ageing(recorded, today=TODAY) == expected


def test_when_the_promise_was_over():
    """180 days count; after them the last day is said."""
    assert window_note("2026-05-25", today=TODAY) == ""
    assert window_note("2026-05-24", today=TODAY) == (
        "recorded on 2026-05-24, it was promised to be readable until 2026-11-20"
    )
    assert window_note("soon", today=TODAY) == "it was recorded on 'soon', which is no date"
