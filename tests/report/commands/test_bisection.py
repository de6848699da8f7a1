"""What a search prints at its end: the table, the side that was compared with, the answer."""

from dataclasses import replace

import pytest

from jaxgate.ext.bisect.model import Bisection, Mark, Probe, Quantity
from jaxgate.ext.bisect.text import (
    bisection_table,
    compared_with,
    describe_quantity,
    first_bad_lines,
    likeness,
    moved_twice,
)

TEMP = Quantity(
    name="temp_bytes", good=79.7e6, bad=16.8e6, good_tolerance=4e6, bad_tolerance=0.844e6, gain=True
)  # of ci/test_releases.py, from jax 0.10.2 to 0.12.0.1
RELEASES = ["0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0"]
FOUND = Bisection(
    quantity=TEMP,
    probes=(
        Probe(revision="0.11.1", mark=Mark.BAD, figure=13.6e6, why="like neither side"),
        Probe(
            revision="0.11.0", mark=Mark.SKIPPED, figure=None, why="not measured: ERROR: No matching distribution found"
        ),
    ),
)
TIME = Quantity(name="run_ns", good=1.0, bad=1.2, good_tolerance=0.0, bad_tolerance=0.0)


def table(width=None):
    """The table of that search."""
    return bisection_table(FOUND, TEMP, RELEASES, unit="release", short=str, width=width)


def test_the_table_has_all_that_was_measured_in_the_order_of_the_range():
    """With the number of the step, the figure, what it is and what decided."""
    assert table() == [
        "step  release  temp_bytes  is       decided by",
        "      0.10.2      79.7 MB  good     the good side",
        "   2  0.11.0            –  skipped  not measured: ERROR: No matching distribution found",
        "   1  0.11.1      13.6 MB  bad      like neither side",
        "      0.12.0      16.8 MB  bad      the bad side",
    ]


@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_longer_than_the_terminal(width):
    assert max(map(len, table(width))) <= width


def test_it_says_which_side_was_compared_with():
    assert compared_with(TEMP, "good", "release").endswith("compared with the good side: bad is less than 75.7 MB")
    assert compared_with(TEMP, "bad", "release").endswith("the bad side: bad is what is like it, 16.8 MB ± 844 kB")
    grown = replace(TEMP, good=16.8e6, bad=79.7e6, good_tolerance=0.8e6)
    assert compared_with(grown, "good", "release").endswith("bad is more than 17.6 MB")
    assert "bad is what a duel with its program finds slower" in compared_with(TIME, "good", "commit")


def test_a_figure_that_is_like_neither_side_points_at_the_other_question():
    (note,) = moved_twice(FOUND, TEMP, "good", str)
    assert note.startswith(
        "like neither side: 0.11.1 (13.6 MB); temp_bytes moved more than once. --compare-with bad names"
    )
    assert "--compare-with good names" in moved_twice(FOUND, TEMP, "bad", str)[0]
    assert moved_twice(Bisection(), TEMP, "good", str) == []
    assert [likeness(TEMP, figure) for figure in (79e6, 17e6, 13.6e6)] == [
        "like the good side", "like the bad side", "like neither side",
    ]  # fmt: skip


def test_what_moved_is_said_with_its_direction():
    assert describe_quantity(TEMP) == (
        "temp_bytes 16.8 MB against 79.7 MB = 0.21 ×, which is better: what made it so is searched for"
    )
    assert describe_quantity(replace(TEMP, gain=False, good=0.0)) == "temp_bytes 16.8 MB against 0 B"
    assert describe_quantity(TIME) == "no fact is worse; a call takes 1.20 × the good side's time"


def test_the_answer_is_one_or_all_that_may_be_it():
    """A subject is a text of the checkout: nothing in it reaches the terminal."""
    about = {"unit": "commit", "case": "a/b", "describe": "{} \x1b[31m".format, "skipped": 1}
    assert first_bad_lines(["1"], gain=False, **about) == ["the first bad commit of a/b: 1 \\u001b[31m"]
    assert first_bad_lines(["1"], gain=True, **about)[0].startswith("the first better commit of a/b: 1")
    assert first_bad_lines(["1", "2"], gain=False, **about)[:2] == [
        "the first bad commit of a/b is one of 2, as 1 could not be measured:", "  1 \\u001b[31m",
    ]  # fmt: skip
