"""What float error explains of a difference between two results, and what it does not."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from jaxgate.ext.opinion.agreement import allowed_error, compare, distance, perturbed

EPS = 2.0**-23
X = np.linspace(1.0, 2.0, 8, dtype=np.float32)


def agreement(ours, run, inputs=(X,), *, eps=EPS, longest_sum=1):
    """Compare single results."""
    return compare([ours], lambda given: [run(*given)], inputs, eps=eps, longest_sum=longest_sum, in_order=True)


@pytest.mark.parametrize(("roundings", "wrong"), [(0, None), (31, None), (33, 0)])
def test_thirty_two_roundings_of_the_largest_value_are_allowed(roundings, wrong):
    """One more is a difference: an error of the floats would have to be larger in a program that moves so little."""
    ours = X.astype(np.float64)
    ours[2] += roundings * EPS * X.max()
    found = agreement(ours, lambda x: x.astype(np.float64))
    assert found.wrong == wrong
    assert found.apart == pytest.approx(roundings * EPS)
    if wrong is not None:
        assert found.distance.place == (2,)
        assert (found.distance.count, found.distance.size) == (1, 8)


@pytest.mark.parametrize(
    "argument",
    [np.array([-np.inf, 0], np.float32), np.array([4_000_000_000], np.uint32), np.array([7])],
    ids=["a mask", "a seed", "a counter"],
)
def test_garbage_where_zeros_are_right_is_wrong_whatever_the_arguments_are(argument):
    """No mask, seed or counter is a measure of a float that should be zero."""
    ours, right = np.full(4, 1000.0, np.float32), np.zeros(4, np.float32)
    assert agreement(ours, lambda *_: right, (argument,)).wrong == 0


def test_what_moves_with_its_arguments_may_differ_as_far():
    """A result that one rounding of the arguments moves by a thousand roundings may be off by eight times that."""

    def steep(x):
        return np.sin(x.astype(np.float64) * 4000)

    far = distance(steep(perturbed([X], EPS, 1)[0]), steep(X), allowed=0).relative
    assert 100 * EPS < far < 0.01
    assert agreement(steep(X) + 4 * far, steep).wrong is None
    assert agreement(steep(X) + 40 * far, steep).wrong == 0


def test_a_chaotic_result_is_left_alone():
    """Where one rounding of an argument moves everything, a difference says nothing; others are compared all the same."""

    def run(given):
        return [np.sin(given[0].astype(np.float64) * 1e8), given[0]]

    chaos = compare([np.zeros(8), X], run, [X], eps=EPS, longest_sum=1, in_order=True)
    assert (chaos.wrong, chaos.left_alone) == (None, (0,))
    assert chaos.apart == 0.0
    wrong = compare([np.zeros(8), X * 1.01], run, [X], eps=EPS, longest_sum=1, in_order=True)
    assert (wrong.wrong, wrong.left_alone) == (1, (0,))


@pytest.mark.parametrize("garbage", [1e6, np.nan, np.inf])
def test_what_no_chaos_makes_is_a_difference_all_the_same(garbage):
    """A chaotic result stays as large as it is: a number that is a hundred times as large was never computed."""
    ours = np.zeros(8)
    ours[3] = garbage
    assert agreement(ours, lambda x: np.sin(x.astype(np.float64) * 1e8)).wrong == 0


def test_a_wrong_program_is_not_asked_how_far_it_may_move():
    """Garbage moves far, too: only the other way of computing it is run on perturbed arguments."""
    asked = []

    def run(x):
        asked.append(x)
        return x

    assert agreement(X * -7, run).wrong == 0
    assert len(asked) == 3
    assert all((one != two).any() for one, two in pairwise(asked))


def test_results_that_agree_are_computed_once():
    """The perturbed runs, twice the cost, are for those that differ."""
    asked = []
    agreement(X, lambda x: asked.append(x) or x)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "relative"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([1.0, np.inf], [1.0, np.inf], 0.0),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([1.0, 2.0], [1.0, np.nan], np.inf),
        ([1.0, np.inf], [1.0, -np.inf], np.inf),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 1e-9], [0.0, 0.0], np.inf),
        ([3, 4], [3, 4], 0.0),
        ([3, 5], [3, 4], 0.25),
        ([True, False], [True, True], 1.0),
        ([], [], 0.0),
    ],
)
def test_the_distance_is_a_share_of_the_largest_value(ours, theirs, relative):
    """What is not finite must be the same; a number beside zeros is infinitely far."""
    assert distance(np.array(ours), np.array(theirs), allowed=0).relative == relative


def test_beside_zeros_a_number_is_held_against_the_arguments():
    """One rounding of the largest argument is nothing: two ways to compute zero may differ by it."""
    (x,) = perturbed([X], EPS, 1)
    assert agreement(x - X, lambda x: np.zeros_like(x)).wrong is None
    assert agreement(X, lambda x: np.zeros_like(x)).wrong == 0


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float64])
def test_numbers_that_are_too_small_may_be_zeros(dtype):
    """XLA flushes them, and the interpreter does not."""
    tiny = np.array([float(ml_dtypes.finfo(dtype).tiny)] * 2)
    assert distance(np.zeros(2, dtype), (tiny / 2).astype(dtype), allowed=0).relative == 0
    assert distance(np.zeros(2, dtype), (tiny * 4).astype(dtype), allowed=0).relative == 1


@pytest.mark.parametrize("values", [np.array([1, 2, 300]), np.array([True, False])])
def test_whole_numbers_must_be_equal(values):
    """There is no tolerance between two token ids, unless a rounding of the arguments moves them."""
    other = values.copy()
    other[0] = not other[0] if values.dtype == bool else 2
    assert agreement(other, lambda _: values).wrong == 0
    assert agreement(values, lambda _: values).wrong is None


def test_a_choice_between_equals_is_left_alone():
    """Of two numbers that one rounding exchanges, either may be the larger one."""
    near = np.array([1.0, 1.0 + EPS], np.float32)
    found = agreement(np.array(0), lambda x: np.array(int(np.argmax(x))), [near])
    assert (found.wrong, found.left_alone) == (None, (0,))


def test_more_is_allowed_of_coarser_floats_and_longer_sums():
    """A sum that is added up in its order may be off by a rounding for each of its numbers."""
    assert allowed_error(EPS, 1, in_order=True) == 32 * EPS
    assert allowed_error(2.0**-7, 1, in_order=True) == 0.25
    assert allowed_error(EPS, 4096, in_order=True) == 1024 * EPS
    assert allowed_error(EPS, 4096, in_order=False) == 256 * EPS
    assert allowed_error(2.0**-7, 4096, in_order=False) == 0.25, "compilers add up bfloat16 in float32"
    assert allowed_error(2.0**-7, 4096, in_order=True) == 8.0
    ones = np.full(10**6, 0.1, np.float32)
    in_order = np.float32(np.add.accumulate(ones)[-1])
    assert abs(in_order / 1e5 - 1) > 32 * EPS, "it is that much off"
    assert agreement(np.float32(1e5), lambda _: in_order, [ones], longest_sum=10**6).wrong is None


def test_arguments_are_moved_by_one_rounding_of_the_coarsest_float():
    """Up or down by chance, the same for the same seed; whole numbers stay as they are."""
    inputs = [X, np.arange(3), X.astype(ml_dtypes.bfloat16)]
    fine, coarse = perturbed(inputs, EPS, 1), perturbed(inputs, 2.0**-7, 1)
    assert [one.dtype for one in fine] == [one.dtype for one in inputs]
    np.testing.assert_array_equal(fine[1], inputs[1])
    assert 0 < np.abs(fine[0] / X - 1).max() < 4 * EPS
    assert np.abs(coarse[0] / X - 1) == pytest.approx(2.0**-7, rel=1e-3)
    assert (fine[2] != inputs[2]).any(), "of its own type where that is coarser"
    np.testing.assert_array_equal(fine[0], perturbed(inputs, EPS, 1)[0])


def test_floats_that_are_too_coarse_are_left_alone():
    """Where nearly everything would have to be allowed, nothing is compared."""
    found = agreement(X * -1, lambda x: x, eps=2.0**-3)
    assert (found.wrong, found.left_alone, found.apart) == (None, (0,), None)
