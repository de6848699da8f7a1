"""The history of a case as text: curves, and what moved most."""

from dataclasses import replace

import pytest

from jaxgate.ext.history.model import HistoryPoint
from jaxgate.ext.history.text import history_text, sparkline

POINT = HistoryPoint(
    run="r", moment="2026-11-25T02:30:00+00:00", case="scan/rnn", folder="cpu-1-jax-0.10", status="SAME"
)


@pytest.mark.parametrize(
    ("values", "curve"),
    [
        ([], ""),
        ([None, None], ""),
        ([5.0], "▁"),
        ([5.0, 5.0, 5.0], "▁▁▁"),
        ([0.0, 7.0], "▁█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([7.0, None, 0.0], "█ ▁"),
        ([-7.0, 0.0], "▁█"),
        ([1.0, float("nan"), float("inf"), 8.0], "▁  █"),
        ([1e18, 1e18 + 2e15], "▁█"),
    ],
)
def test_a_curve(values, curve):
    """The least value is the lowest block, and what is not known is a gap."""
    assert sparkline(values) == curve


def test_a_long_curve_keeps_its_ends_and_a_step():
    """Each sign is the mean of values that follow each other; none is left out."""
    assert sparkline([0.0] * 50 + [7.0] * 50, width=10) == "▁▁▁▁▁█████"
    assert sparkline([0.0, 0.0, 7.0, None], width=2) == "▁█"
    assert sparkline([float(number) for number in range(61)], width=60)[0] == "▁"


def rows(*figures):
    """What the table says of each run with these figures."""
    points = [replace(POINT, figures=each) for each in figures]
    return [
        line[line.index("SAME") + 4 :].strip()
        for line in history_text(points, None, {}, {}).splitlines()
        if "SAME" in line
    ]


def test_the_fact_that_moved_most_is_named():
    """By its ratio, up or down; times of another day are no facts."""
    assert rows({"a_bytes": 100, "b_bytes": 100}, {"a_bytes": 130, "b_bytes": 50}) == ["", "b_bytes 100 B → 50 B"]
    assert rows({"a_bytes": 100, "lower_ns": 1}, {"a_bytes": 100, "lower_ns": 9_000}) == ["", ""]


def test_what_came_from_nothing_moved_farthest():
    assert rows({"a": 0, "b": 1}, {"a": 1, "b": 50}) == ["", "a 0 → 1"]
    assert rows({"a": 3, "b": 1}, {"a": 0, "b": 50}) == ["", "a 3 → 0"]


def test_a_fact_that_one_run_does_not_know_did_not_move():
    assert rows({"a": 1}, {"a": 1, "b": 2}) == ["", ""]


def test_a_run_without_anything():
    """It is a row all the same, and the head of its part says what is not known."""
    text = history_text([replace(POINT, folder="", status="", commit=None)], None, {}, {})
    assert text.startswith("scan/rnn on hardware that is not known: 1 run, 2026-11-25 02:30\n")
    assert text.splitlines()[-1].split() == ["2026-11-25", "02:30", "unknown", "unknown"]


def test_a_name_cannot_pretend_to_be_a_line():
    text = history_text([replace(POINT, recorded="x\nSAME  scan/other", elsewhere="\x1b[2J")], None, {}, {})
    assert sum(line.startswith("SAME") for line in text.splitlines()) == 0
    assert "\x1b" not in text
