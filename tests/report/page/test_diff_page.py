"""The page of two sides: what is said of both, a table of facts, one of times."""

from jaxgate.ext.diff.judge import diff_sides
from jaxgate.ext.diff.model import DiffSide
from jaxgate.ext.diff.page import diff_document
from jaxgate.ext.diff.text import diff_summary
from jaxgate.ext.history.model import HistoryPoint


def side(name, case="scan/a", **figures):
    """A side of one case."""
    found = HistoryPoint(run="", moment="", case=case, folder="cpu-a-1-jax-0.10", figures=figures)
    return DiffSide(name=name, about="a run", cases={case: (found,)})


def page(first, second):
    """The page of two sides."""
    diff = diff_sides(first, second)
    return diff_document(diff, diff_summary(diff))


def test_facts_and_times_are_tables():
    """With both numbers, their ratio and which way they went."""
    text = page(side("a", temp_bytes=100_000, run_ns=1000.0), side("b", temp_bytes=300_000, run_ns=2000.0))
    for part in (
        "first: a, a run", "1 case on both sides: 1 worse", ">WORSE<", ">100 kB<", ">300 kB<", ">3.00 ×<",
        ">2.00 ×<",
    ):  # fmt: skip
        assert part in text
    assert text.index(">temp_bytes<") < text.index("Times of two moments, not judged") < text.index(">run_ns<")


def test_nothing_that_differs_has_no_empty_table():
    text = page(side("a", temp_bytes=1), side("b", temp_bytes=1))
    assert "1 case on both sides: 1 the same" in text
    assert "<table" not in text


def test_names_of_sides_and_cases_stay_names():
    evil = "<script>alert(1)</script>"
    text = page(side(evil, evil, temp_bytes=1), side("b", evil, temp_bytes=2))
    assert evil not in text
    assert "&lt;script&gt;alert(1)" in text
