"""Two histograms in words: what grew is named, heaviest first, and nothing is named that did not."""

import pytest

from jaxgate.judge.causes.growth import at, count_of, grown, heaviest
from jaxgate.model.measurement import MAX_NAMED

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


SCALAR, SMALL, LARGE = "stablehlo.add f32", "stablehlo.add 4xf32", "stablehlo.add 1024x1024xf32"
PRODUCT, LARGE_PRODUCT = "float32[8,8] x float32[8,8]", "float32[512,64] x float32[64,64]"
PSUM, LARGE_PSUM = "psum float32[4] over data", "psum float32[4096] over data"
BROADCAST = "stablehlo.broadcast_in_dim 4096x4096xf32"
LIKE = "stablehlo.reshape_like 4096x4096xf32"  # no plumbing, but its name starts as one's
BROKEN_OFF = f"stablehlo.custom_call @kernel[{'1' * 60}"  # a bracket that never closes: read once, not for ever


@pytest.mark.parametrize(
    ("now", "before", "named"),
    [
        ({TANH: 1}, {}, f"{TANH} 0 → 1"),
        ({TANH: 1}, {ADD: 1}, f"{TANH} 0 → 1; gone: {ADD}"),
        ({SMALL: 100, LARGE: 1}, {}, f"{LARGE} 0 → 1; {SMALL} 0 → 100"),
        ({SCALAR: 3, SMALL: 1}, {}, f"{SMALL} 0 → 1; {SCALAR} 0 → 3"),
        ({PRODUCT: 2, LARGE_PRODUCT: 1}, {}, f"{LARGE_PRODUCT} 0 → 1; {PRODUCT} 0 → 2"),
        ({PSUM: 1, LARGE_PSUM: 1}, {}, f"{LARGE_PSUM} 0 → 1; {PSUM} 0 → 1"),
        ({BROADCAST: 9, ADD: 1}, {}, f"{ADD} 0 → 1; {BROADCAST} 0 → 9"),
        ({BROADCAST: 9}, {}, f"{BROADCAST} 0 → 9"),
        ({LIKE: 1, ADD: 1}, {}, f"{LIKE} 0 → 1; {ADD} 0 → 1"),
        ({TANH: 1, ADD: 1}, {}, f"{ADD} 0 → 1; {TANH} 0 → 1"),
        ({ADD: 1, TANH: 1}, {}, f"{ADD} 0 → 1; {TANH} 0 → 1"),
        *[
            ({odd: 2}, {odd: 1}, f"{odd} 1 → 2")
            for odd in ("stablehlo.add ?x64xf32", "stablehlo.add 0x64xf32", "jit_step", "", BROKEN_OFF)
        ],
    ],
)
def test_the_heaviest_comes_first(now, before, named):
    """By how many more there are, times the elements of each; plumbing comes last; what is odd is named too."""
    assert grown(now, before, {}) == named


def test_only_the_heaviest_are_named():
    """Three that grew and three that are gone: a line is read, a list is not."""
    now = {f"stablehlo.op{size} {size}xf32": 1 for size in range(1, 10)}
    before = {f"stablehlo.old{size} {size}xf32": 1 for size in range(1, 10)}
    assert MAX_NAMED == 3
    assert grown(now, before, {}) == (
        "stablehlo.op9 9xf32 0 → 1; stablehlo.op8 8xf32 0 → 1; stablehlo.op7 7xf32 0 → 1; "
        "gone: stablehlo.old9 9xf32, stablehlo.old8 8xf32, stablehlo.old7 7xf32"
    )


def test_a_line_stays_readable():
    """Long names leave no place for the third, nor for what is gone; the first is told whatever its length."""
    names = [f"stablehlo.custom_call @{letter * 90} {size}xf32" for letter, size in (("a", 9), ("b", 8), ("c", 7))]
    assert grown(dict.fromkeys(names, 1), {ADD: 1}, {}) == f"{names[0]} 0 → 1; gone: {ADD}"
    short = [name.replace("a" * 90, "a").replace("b" * 90, "b") for name in names]
    assert grown(dict.fromkeys(short, 1), {}, {}) == "; ".join(f"{name} 0 → 1" for name in short)
    long = f"stablehlo.custom_call @{'d' * 400} 4xf32"
    assert grown({long: 1}, {ADD: 1}, {}) == f"{long} 0 → 1"


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
