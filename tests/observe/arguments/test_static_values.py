"""Two static values beside each other: whole where they are short, else the places where they differ."""

import pytest

from jaxgate.observe.arguments.static import static_change

TREE = "(((<function train_step at 0x7fc69d4e65c0>,), PyTreeDef(*)), ((None, {rate}, PyTreeDef((*, *))), ((None, {more}))))"


def tree(rate, more="3", address="7fc69d4e65c0"):
    """The text of a static argument as Equinox has it, of a whole model and optimiser."""
    return (TREE.format(rate=rate, more=more) + ", None" * 800).replace("7fc69d4e65c0", address)


def test_one_number_of_a_large_tree():
    """6,000 characters twice would hide what matters."""
    change = static_change(tree("0.0010000000474974513"), tree("0.0009999999310821295", address="7f00"))
    assert change == "static 0.0010000000474974513 → static 0.0009999999310821295"


def test_several_places():
    """The first two; what only one of them has stands beside nothing."""
    assert static_change(tree("0.1"), tree("0.2", more="4")) == "static 0.1 → static 0.2; static 3 → static 4"
    longer = "x" * 60 + "(a, b)"
    assert static_change(longer, longer + ", c") == "static nothing → static , c"
    many = [f"({', '.join(f'{name}={value}' for name in 'abcdefghijklm')}, {'z' * 60})" for value in (1, 2)]
    assert static_change(*many) == "static 1 → static 2; static 1 → static 2; and 11 more"


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("1.0", "0.5", "static 1.0 → static 0.5"),
        ("'relu'", "'gelu'", "static 'relu' → static 'gelu'"),
        ("<function a at 0x1>", "<function b at 0x1>", "static <function a> → static <function b>"),
        ("<function <lambda> at 0x1>", "<function <lambda> at 0x2>", "static <function <lambda>> is a new object"),
    ],
)
def test_short_ones_are_shown_whole(old, new, change):
    """Without addresses; where nothing else differs, that is what it is."""
    assert static_change(old, new) == change


def test_a_value_that_takes_long_to_compare_is_cut_at_its_ends():
    """No word of 20,000 is held against each of 20,000 others."""
    body = ", ".join(map(str, range(20_000)))
    assert static_change(f"[{body}]", f"[{body.replace(' 7000,', ' 1,')}]") == "static 7000 → static 1"
    assert len(static_change(f"[1, {body}]", f"[2, {body}, 9]")) < 200
