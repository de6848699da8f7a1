"""Where the time of a step goes, by hand: nested, side by side, in gaps; and which rows explain a longer step."""

from dataclasses import replace

import pytest

from jaxgate.ext.profile.model import OpRow, OpTable, Span, StepTimes
from jaxgate.ext.profile.operations import BEFORE, FLOOR_NS, compare, divide, typical

US = 1_000


def span(name, begin, end, thread=0):
    """An operation, in microseconds."""
    return Span(thread=thread, name=name, begin_ns=begin * US, end_ns=end * US)


STEPS = {
    "alone, with gaps named after what ran before": (
        [span("dot", 10, 40), span("add", 50, 90)],
        {BEFORE: 10, "dot": 30, "gap after dot": 10, "add": 40, "gap after add": 10},
    ),
    "a loop has what its body leaves": (
        [span("while", 0, 100), span("dot", 10, 40), span("add", 40, 50), span("dot", 60, 90)],
        {"while": 30, "dot": 60, "add": 10},
    ),
    "a loop in a loop": (
        [span("outer", 0, 100), span("inner", 20, 80), span("dot", 30, 50)],
        {"outer": 40, "inner": 40, "dot": 20},
    ),
    "two devices at once have half each, one that waits leaves it to the other": (
        [span("dot", 0, 60, thread=1), span("dot", 0, 40, thread=2), span("add", 40, 100, thread=2)],
        {"dot": 50, "add": 50},
    ),
    "a collective beside an operation": (
        [span("dot", 0, 60, thread=1), span("all-reduce", 0, 100, thread=2)],
        {"dot": 30, "all-reduce": 70},
    ),
    "cut at the end of the step": ([span("dot", 90, 140)], {BEFORE: 90, "dot": 10}),
    "no operation is one gap": ([], {BEFORE: 100}),
    "an event of no length": ([span("dot", 10, 10), span("add", 10, 100)], {BEFORE: 10, "add": 90}),
}


@pytest.mark.parametrize(("spans", "microseconds"), STEPS.values(), ids=STEPS)
def test_a_step_is_divided(spans, microseconds):
    """Each moment belongs to one operation, the innermost of its thread, or to a gap: nothing counts twice."""
    found = divide(spans, 0, 100 * US)
    assert found.wall_ns == 100 * US == pytest.approx(sum(found.times_ns.values()))
    assert {name: time / US for name, time in found.times_ns.items()} == pytest.approx(microseconds)


def steps(*times):
    """Steps of one operation and a rest, in microseconds."""
    return [StepTimes(wall_ns=10 * time * US, times_ns={"dot": 9 * time * US, "rest": time * US}) for time in times]


def test_a_typical_step_is_the_mean_of_the_quicker_half():
    """Steps that were interrupted tell nothing; of five the quicker three count."""
    found = typical(steps(10, 90, 11, 12, 50))
    assert found.wall_ns == pytest.approx(110 * US)
    assert found.times_ns == {"dot": pytest.approx(99 * US), "rest": pytest.approx(11 * US)}


def test_the_floor_is_what_two_halves_of_the_steps_differ_by():
    """10 and 12 against 11 and 13: the operation's means are 99 and 108 microseconds."""
    assert typical(steps(10, 11, 12, 13, 90, 90, 90)).floor_ns == pytest.approx(9 * US)


def test_the_floor_is_never_below_what_the_profiler_costs():
    """Steps that agree to the nanosecond have a floor too, and so has a single one."""
    assert typical(steps(10, 10, 10, 10)).floor_ns == FLOOR_NS
    assert typical(steps(10)).floor_ns == FLOOR_NS


def test_no_step_is_refused():
    with pytest.raises(ValueError, match="expected a step in the profile, found none"):
        typical([])


def side(floor=1, **times):
    """A typical step, in microseconds; two underscores stand for a slash."""
    named = {name.replace("__", "/"): time * US for name, time in times.items()}
    return StepTimes(wall_ns=sum(named.values()), times_ns=named, floor_ns=floor * US)


def rows(now, other, lines=None):
    """Rows as name, other side and today's, in microseconds; nothing is lost of either step."""
    table = compare(now, other, lines or {}, side="baseline")
    assert sum(row.now_ns for row in table.rows) + table.folded_now_ns == pytest.approx(table.now_ns)
    assert sum(row.other_ns for row in table.rows) + table.folded_other_ns == pytest.approx(table.other_ns)
    return [(row.name, round(row.other_ns / US), round(row.now_ns / US)) for row in table.rows]


GAP = StepTimes(wall_ns=50 * US, times_ns={"gap after dot": 50 * US}, floor_ns=US)
PAIRS = {
    "the largest difference first, whichever way it goes": (
        side(dot=50, add=9, exp=30),
        side(dot=20, add=9, exp=90),
        [("exp", 90, 30), ("dot", 20, 50)],
    ),
    "another primitive of the same scope is its successor": (
        side(softmax__div=50),
        side(softmax__exp=20),
        [("softmax/div", 20, 50)],
    ),
    "so are two": (side(softmax__div=50, softmax__mul=4), side(softmax__exp=20), [("softmax/div and 1 more", 20, 54)]),
    "a primitive that left its loop": (side(dot=50), side(while__body__dot=20), [("dot", 20, 50)]),
    "waiting after an operation is not the operation": (
        GAP,
        side(dot=20),
        [("gap after dot", 0, 50), ("dot (gone)", 20, 0)],
    ),
    "what came and what went": (side(sort=50, dot=5), side(dot=5, exp=20), [("sort", 0, 50), ("exp (gone)", 20, 0)]),
}


@pytest.mark.parametrize(("now", "other", "expected"), PAIRS.values(), ids=PAIRS)
def test_two_steps_side_by_side(now, other, expected):
    """An operation stands beside its like, or its successor, of the other step; else it stands alone."""
    assert rows(now, other) == expected


def test_differences_below_the_floor_are_folded():
    table = compare(side(dot=50, add=12, exp=30), side(dot=20, add=9, exp=29, floor=5), {}, side="baseline")
    assert [row.name for row in table.rows] == ["dot"]
    assert (table.folded, table.folded_now_ns, table.folded_other_ns, table.floor_ns) == (2, 42 * US, 38 * US, 5 * US)


def test_lines_are_those_of_todays_operations():
    now = StepTimes(wall_ns=90 * US, times_ns={"sort": 50 * US, "gap after sort": 40 * US}, floor_ns=US)
    table = compare(now, side(dot=1), {"sort": "model.py:7"}, side="baseline")
    assert [(row.name, row.line) for row in table.rows if row.now_ns] == [
        ("sort", "model.py:7"), ("gap after sort", "model.py:7"),
    ]  # fmt: skip


def test_one_side_alone_lists_what_takes_time():
    """Nothing to compare with: the table is today's, and blames nobody."""
    table = compare(side(dot=50, add=1), None, {})
    assert (table.other, [row.name for row in table.rows], table.culprits) == ("", ["dot"], ())


TABLE = OpTable(
    other="baseline",
    now_ns=90 * US,
    other_ns=50 * US,
    floor_ns=US,
    rows=(),
    folded=0,
    folded_now_ns=0,
    folded_other_ns=0,
)


def row(name, other, now):
    """One row, in microseconds."""
    return OpRow(name=name, line="", now_ns=now * US, other_ns=other * US)


def test_culprits_are_the_three_rows_that_explain_most():
    """By what they add, not by their place; what got quicker is none."""
    found = replace(TABLE, rows=(row("quick", 90, 10), row("a", 0, 5), row("b", 0, 30), row("c", 0, 9), row("d", 0, 7)))
    assert [culprit.name for culprit in found.culprits] == ["b", "c", "d"]


def test_an_operation_that_explains_a_good_part_comes_before_any_gap():
    """Gaps grow with the load of the machine; without such an operation they lead."""
    gap = replace(row("gap after a", 0, 20), gap=True)
    names = [
        [culprit.name for culprit in replace(TABLE, rows=(gap, row("a", 0, most))).culprits] for most in (10, 9)
    ]  # of 40 more
    assert names == [["a", "gap after a"], ["gap after a", "a"]]


@pytest.mark.parametrize("changes", [{"now_ns": 50 * US}, {"now_ns": 51 * US}, {"now_ns": 20 * US}, {"other": ""}])
def test_a_step_that_is_not_longer_has_no_culprit(changes):
    """Nor has one without another side: a row that only one side could have proves nothing."""
    assert replace(TABLE, rows=(row("b", 0, 30),), **changes).culprits == ()
