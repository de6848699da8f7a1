"""The pure half of a search: which fact is followed, which side a figure is like, where to look next."""

from dataclasses import replace

import pytest
from support.factories import baseline

from jaxgate.ext.bisect.judge import is_same_program, moved_facts, quantity_of, remaining
from jaxgate.ext.bisect.model import Mark, Quantity
from jaxgate.model.decision import Status
from jaxgate.model.verdict import Finding

TEMP = Quantity(name="temp_bytes", good=79.7e6, bad=16.8e6, good_tolerance=4.0e6, bad_tolerance=0.84e6)
"""It moved twice between these: by way of 13.6 MB."""


def fact(name="temp_bytes", status=Status.REGRESSED, *, now=200_000, against=100_000, allowed=109_096):
    """A fact of the bad side, against the good side's."""
    return Finding(kind="fact", name=name, status=status, now=now, against=against, allowed=allowed)


def test_what_is_worse_is_followed_before_what_is_better():
    """In the judge's order otherwise; what is not a fact, or did not move, is left out."""
    better, worse, other = (fact("xla_flops", Status.IMPROVED), fact(), fact("xla_bytes"))
    time = Finding(kind="time", name="run_ns", status=Status.SLOWER, now=2, against=1)
    assert moved_facts([better, time, worse, fact("traces", Status.INVALID), other]) == (worse, other, better)


def test_what_has_no_policy_cannot_be_followed():
    """Products of wider floats are red, and a sum of labels has no figure to search by."""
    wider = fact("wider_products")
    assert moved_facts([wider, fact()]) == (fact(),)


def test_the_tolerance_of_a_figure_is_the_policys():
    """5 % and 4096 bytes, of the good figure and of the bad one."""
    found = quantity_of(fact())
    assert (found.good_tolerance, found.bad_tolerance) == (9096, 14096)


def test_a_tolerance_of_the_case_is_taken_as_a_share_on_the_bad_side():
    found = quantity_of(fact(allowed=150_000))
    assert (found.good_tolerance, found.bad_tolerance) == (50_000, 100_000)


@pytest.mark.parametrize(
    ("figure", "with_good", "with_bad"),
    [
        (79.7e6, Mark.GOOD, Mark.GOOD),
        (90e6, Mark.GOOD, Mark.GOOD),  # on the other side of the good figure
        (76e6, Mark.GOOD, Mark.GOOD),
        (13.6e6, Mark.BAD, Mark.GOOD),  # like neither
        (16.8e6, Mark.BAD, Mark.BAD),
        (17.5e6, Mark.BAD, Mark.BAD),
    ],
)
def test_a_figure_is_compared_with_the_side_that_was_asked_for(figure, with_good, with_bad):
    """Bad is what is unlike the good side, or what is like the bad one."""
    assert TEMP.mark(figure, "good") is with_good
    assert TEMP.mark(figure, "bad") is with_bad


def test_the_direction_is_that_of_the_sides():
    """A figure that grew: what is below the good one is good."""
    grown = Quantity(name="temp_bytes", good=10, bad=20, good_tolerance=1, bad_tolerance=1)
    assert [grown.mark(figure, "good") for figure in (5, 11, 12, 30)] == [Mark.GOOD, Mark.GOOD, Mark.BAD, Mark.BAD]


def search(revisions, first_bad, broken=()):
    """Follow what is left to the end; gives it and the revisions that were tried."""
    marks = {}
    while (left := remaining(revisions, marks)).following is not None:
        one = left.following
        assert one not in marks
        bad = revisions.index(one) >= revisions.index(first_bad)
        marks[one] = Mark.SKIPPED if one in broken else Mark.BAD if bad else Mark.GOOD
    return left, list(marks)


@pytest.mark.parametrize("first_bad", range(1, 61))
def test_the_first_bad_one_of_60_is_found_in_6_steps(first_bad):
    revisions = [str(number) for number in range(61)]
    left, tried = search(revisions, str(first_bad))
    assert left.first_bad == (str(first_bad),)
    assert len(tried) <= 6


def test_revisions_that_cannot_be_measured_are_stepped_over():
    """As long as the answer lies between two that can."""
    revisions = [*"abcdefgh"]
    assert search(revisions, "f", broken={"c", "d"})[0].first_bad == ("f",)
    left, _ = search(revisions, "e", broken={"d", "e"})
    assert left.first_bad == ("d", "e", "f")


def test_two_neighbours_need_no_step():
    left = remaining(["a", "b"], {})
    assert (left.first_bad, left.following, left.steps) == (("b",), None, 0)


def test_a_program_is_met_again_only_if_nothing_differs():
    """Program, options, inputs, environment: whatever identity needs."""
    one = baseline()
    assert is_same_program(one, one)
    other = replace(one, fingerprints=replace(one.fingerprints, program="f" * 32))
    assert not is_same_program(one, other)
    assert not is_same_program(one, replace(one, environment={**one.environment, "XLA_FLAGS": "--a"}))
    assert not is_same_program(one, replace(one, fingerprints=replace(one.fingerprints, options=None)))
