"""Two histograms in words: what grew is named, heaviest first, and nothing is named that did not."""

from __future__ import annotations

import pytest

from jaxgate.judge.growth import at, count_of, grown, heaviest
from jaxgate.model import MAX_NAMED

ADD, TANH, DOT = "stablehlo.add 8x64xf32", "stablehlo.tanh 8x64xf32", "stablehlo.dot_general 8x8xf32"


@pytest.mark.parametrize(
    ("now", "before"),
    [({}, {}), ({ADD: 3}, {ADD: 3}), ({ADD: 2}, {ADD: 3}), ({}, {ADD: 3}), ({ADD: 2}, {ADD: 3, TANH: 1})],
    ids=["nothing", "the same", "less", "gone", "less and gone"],
)
def test_without_growth_nothing_is_named(now, before):
    """What became less, or went, made nothing worse."""
    assert grown(now, before, {ADD: "model.py:4"}) == ""


def test_what_grew_is_named_with_both_counts_and_its_line():
    """A number before, a number now, and where one of them stands; no line is made up."""
    assert grown({ADD: 64}, {ADD: 2}, {ADD: "model.py:4"}) == f"{ADD} 2 → 64 at model.py:4"
    assert grown({ADD: 64}, {ADD: 2}, {TANH: "model.py:4"}) == f"{ADD} 2 → 64"


def test_what_is_new_grew_from_nothing():
    """An entry that the baseline lacks counts from zero; what stands in its place then is told too."""
    assert grown({TANH: 1}, {}, {}) == f"{TANH} 0 → 1"
    assert grown({TANH: 1}, {ADD: 1}, {}) == f"{TANH} 0 → 1; gone: {ADD}"


def test_larger_arrays_come_first():
    """Weight is how many more there are, times the elements that each makes."""
    small, large = "stablehlo.add 4xf32", "stablehlo.add 1024x1024xf32"
    assert grown({small: 100, large: 1}, {}, {}) == f"{large} 0 → 1; {small} 0 → 100"
    scalar = "stablehlo.add f32"
    assert grown({scalar: 3, small: 1}, {}, {}) == f"{small} 0 → 1; {scalar} 0 → 3"


def test_products_and_collectives_weigh_by_their_arrays():
    """The other way to write a type counts as well: ``float32[8,64]``."""
    small, large = "float32[8,8] x float32[8,8]", "float32[512,64] x float32[64,64]"
    assert grown({small: 2, large: 1}, {}, {}) == f"{large} 0 → 1; {small} 0 → 2"
    assert grown({"psum float32[4] over data": 1, "psum float32[4096] over data": 1}, {}, {}).startswith(
        "psum float32[4096] over data 0 → 1; "
    )


def test_plumbing_is_named_last():
    """A broadcast of whatever size seldom costs anything by itself."""
    broadcast = "stablehlo.broadcast_in_dim 4096x4096xf32"
    assert grown({broadcast: 9, ADD: 1}, {}, {}) == f"{ADD} 0 → 1; {broadcast} 0 → 9"
    assert grown({broadcast: 9}, {}, {}) == f"{broadcast} 0 → 9"
    costly = "stablehlo.reshape_like 4096x4096xf32"  # another operation, whose name starts alike
    assert grown({costly: 1, ADD: 1}, {}, {}).startswith(costly)


def test_only_the_heaviest_are_named():
    """Three that grew and three that are gone: a line is read, a list is not."""
    now = {f"stablehlo.op{size} {size}xf32": 1 for size in range(1, 10)}
    before = {f"stablehlo.old{size} {size}xf32": 1 for size in range(1, 10)}
    assert MAX_NAMED == 3
    assert grown(now, before, {}) == (
        "stablehlo.op9 9xf32 0 → 1; stablehlo.op8 8xf32 0 → 1; stablehlo.op7 7xf32 0 → 1; "
        "gone: stablehlo.old9 9xf32, stablehlo.old8 8xf32, stablehlo.old7 7xf32"
    )


def test_of_two_alike_the_order_is_that_of_their_names():
    """The same two programs make the same text, however they were counted."""
    assert grown({TANH: 1, ADD: 1}, {}, {}) == grown({ADD: 1, TANH: 1}, {}, {}) == f"{ADD} 0 → 1; {TANH} 0 → 1"


@pytest.mark.parametrize("kind", ["stablehlo.add ?x64xf32", "stablehlo.add 0x64xf32", "jit_step", ""])
def test_a_name_without_a_size_is_named_as_well(kind):
    """An odd type is no reason to pass over what grew."""
    assert grown({kind: 2}, {kind: 1}, {}) == f"{kind} 1 → 2"


def test_most_of_a_program_is_counted_over_all_types():
    """With nothing to compare with, the commonest operation and a line of its commonest type."""
    now = {ADD: 2, "stablehlo.add 4xf32": 3, TANH: 4}
    lines = {ADD: "model.py:1", "stablehlo.add 4xf32": "model.py:2", TANH: "model.py:3"}
    assert heaviest(now, lines) == "most of the program: 5 × stablehlo.add at model.py:2"
    assert heaviest(now, {}) == "most of the program: 5 × stablehlo.add"
    assert heaviest({TANH: 1, ADD: 1}, {}) == "most of the program: 1 × stablehlo.add"
    assert heaviest({}, {}) == ""


def test_operations_of_one_name_are_counted_together():
    """Whatever their types; no other name that starts alike."""
    operations = {DOT: 2, "stablehlo.dot_general 4x4xf32": 3, "stablehlo.dot 4x4xf32": 5, "stablehlo.while": 1}
    assert count_of(operations, "stablehlo.dot_general") == 5
    assert count_of(operations, "stablehlo.while") == 1
    assert count_of(operations, "stablehlo.sort") == 0


def test_a_line_that_is_not_known_is_not_named():
    """Neither where there is none nor where it is empty."""
    assert (at(ADD, {ADD: "model.py:4"}), at(ADD, {ADD: ""}), at(ADD, {})) == (" at model.py:4", "", "")


def test_a_name_that_breaks_off_costs_no_time():
    """A bracket that never closes, after many digits: read once, and weighed as one element."""
    name = f"stablehlo.custom_call @kernel[{'1' * 60}"
    assert grown({name: 2}, {}, {}) == f"{name} 0 → 2"
