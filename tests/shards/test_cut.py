"""Tests are divided into parts that cost about the same, on each machine alike."""

import random

import pytest

from jaxgate.ext.shards.plugin import EACH_S, cut


def total(costs, part):
    """Seconds of a part."""
    return sum(EACH_S + costs[test] for test in part)


def costs_of(count, seed=1):
    """Some tests, few of them dear."""
    draw = random.Random(seed)
    return {f"test_{number}": draw.lognormvariate(0.0, 1.0) for number in range(count)}


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_each_test_is_in_one_part_and_no_part_is_much_dearer(count):
    """The dearest part is within a few percent of the mean where there are many tests."""
    costs = costs_of(500)
    parts = cut(costs, count)
    assert sorted(test for part in parts for test in part) == sorted(costs)
    seconds = [total(costs, part) for part in parts]
    assert max(seconds) <= 1.05 * sum(seconds) / count


def test_the_order_of_the_tests_decides_nothing():
    """Machines may collect in another order; within a part the order given stays."""
    costs = costs_of(50)
    backwards = dict(reversed(costs.items()))
    parts, others = cut(costs, 4), cut(backwards, 4)
    assert [set(part) for part in parts] == [set(part) for part in others]
    assert [part[::-1] for part in parts] == others


def test_what_nobody_knows_is_taken_for_usual():
    """Tests without a baseline are spread evenly, and those of no known cost at all are counted."""
    costs = {f"known_{number}": 1.0 for number in range(4)} | {f"new_{number}": None for number in range(4)}
    assert [sorted(name[:3] for name in part) for part in cut(costs, 4)] == [["kno", "new"]] * 4
    assert sorted(map(len, cut(dict.fromkeys("abcdefg"), 3))) == [2, 2, 3]


def test_there_may_be_more_parts_than_tests():
    """Some are empty then: pytest says of them that no test ran, which is red."""
    assert cut({"only": 1.0}, 3) == [["only"], [], []]
    assert cut({}, 2) == [[], []]
