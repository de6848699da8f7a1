"""Numbers of things, lists of them and long texts, in few words."""

import pytest

from jaxgate.model.words import cut, plural, shortlist


@pytest.mark.parametrize(
    ("number", "words", "spec", "text"),
    [
        (0, ("case",), "", "0 cases"),
        (1, ("case",), "", "1 case"),
        (1200, ("case",), "", "1200 cases"),
        (1200, ("case",), ",", "1,200 cases"),
        (1, ("case is", "cases are"), "", "1 case is"),
        (2, ("case is", "cases are"), "", "2 cases are"),
    ],
)
def test_only_one_is_singular(number, words, spec, text):
    assert plural(number, *words, spec=spec) == text


@pytest.mark.parametrize(
    ("most", "text"), [(1, "a and 2 more"), (2, "a, b and 1 more"), (3, "a, b, c"), (9, "a, b, c")]
)
def test_a_list_names_the_first_and_counts_the_rest(most, text):
    assert shortlist(("a", "b", "c"), most) == text
    assert shortlist((), most) == ""


@pytest.mark.parametrize(("most", "text"), [(1, "a; and 2 more"), (2, "a; b; and 1 more"), (3, "a; b; c")])
def test_phrases_stand_between_semicolons(most, text):
    assert shortlist(("a", "b", "c"), most, phrases=True) == text


def test_a_line_is_cut_to_a_width():
    """With an ellipsis, never longer; there may be no room at all."""
    assert [cut("abcdef", width) for width in (None, 6, 5, 1, 0, -3)] == ["abcdef", "abcdef", "abcd…", "…", "", ""]


def test_what_separates_two_parts_is_not_the_last_of_a_line():
    assert [cut("one · two", width) for width in (7, 6, 5)] == ["one…", "one…", "one…"]
