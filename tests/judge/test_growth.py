"""Laws of growth: which one points obey, what is held against which, and what somebody may claim."""

from dataclasses import replace

import pytest
from support.factories import baseline, measurement

from jaxgate import Growth, grows
from jaxgate.ext.growth.judge import carries_growth, judge_growth
from jaxgate.ext.growth.model import Grown, Law, at_size, law_of
from jaxgate.judge.causes.suspects import rank_causes
from jaxgate.model.decision import Status

SIZES = (4, 8, 16)
LAWS = {
    "nothing moves": ((7, 7, 7), Law.CONSTANT),
    "a share of each device": ((64, 32, 16), Law.FALLS),
    "rises and falls": ((1, 9, 3), None),
    "falls and rises": ((9, 1, 30), None),
    "linear from anywhere": ((103, 107, 115), Law.LINEAR),
    "linear but for a hundredth": ((1000, 2000, 4016), Law.LINEAR),
    "levels off": ((10, 20, 25), Law.AT_MOST_LINEAR),
    "a sort": ((80, 240, 640), Law.N_LOG_N),
    "a square": ((16, 64, 256), Law.QUADRATIC),
    "pairs": ((6, 28, 120), Law.QUADRATIC),
    "a line and a small square": ((1016, 2064, 4256), Law.QUADRATIC),
    "a cube": ((64, 512, 4096), Law.CUBIC),
    "subsets": ((16, 256, 65536), Law.STEEPER),
    "a step at the end": ((7, 7, 15), Law.STEEPER),
}


@pytest.mark.parametrize("what", LAWS)
def test_the_law_that_points_obey(what):
    counts, law = LAWS[what]
    assert law_of(SIZES, counts) is law


def test_the_memory_of_another_moment_is_a_step():
    """Of what a compiler decides: a level, and then more than that, but less than in proportion."""
    assert law_of(SIZES, (700, 700, 1500), padded=True) is Law.AT_MOST_LINEAR
    assert law_of(SIZES, (700, 700, 3000), padded=True) is Law.STEEPER
    assert law_of(SIZES, (700, 700, 1500)) is Law.STEEPER
    assert law_of(SIZES, (7000, 7300, 8500), padded=True) is Law.QUADRATIC


def test_noise_makes_no_law():
    """A call more or less at one size is none; a term beyond that is."""
    for counts in ((10066, 10067, 10066), (10066, 10065, 10065), (10066, 10066, 10067)):
        assert Grown(sizes=SIZES, facts={"trace_calls": counts}).law("trace_calls") is Law.CONSTANT
        assert law_of(SIZES, counts) is not Law.CONSTANT
    assert Grown(sizes=SIZES, facts={"trace_calls": (2171, 3669, 6658)}).law("trace_calls") is Law.LINEAR
    assert Grown(sizes=SIZES, facts={"trace_calls": (2205, 3815, 7275)}).law("trace_calls") is Law.QUADRATIC


def test_more_sizes_are_held_to_their_order():
    assert law_of((1, 2, 3, 4), (1, 4, 9, 16)) is Law.QUADRATIC
    assert law_of((1, 2, 3, 4), (0, 1, 5, 6)) is None


@pytest.mark.parametrize(
    ("counts", "law", "then"),
    [
        ((7, 7, 7), Law.CONSTANT, 7),
        ((3, 7, 15), Law.LINEAR, 99),
        ((17, 65, 257), Law.QUADRATIC, 10001),
        ((1, 2, 99), None, None),
    ],
)
def test_what_a_fact_will_be(counts, law, then):
    assert at_size(law, SIZES, counts, 100) == then


@pytest.mark.parametrize(
    ("sizes", "counts", "then"),
    [
        ((4, 8, 16), (1000, 2000, 4000), 25_000),
        ((4, 8, 16), (1000, 2000, 4001), 25_012),  # to a thousandth
        ((4, 8, 16), (1000, 2000, 4016), None),  # linear, for who judges
        ((4, 8, 16), (16, 64, 256), None),  # a curve that no fourth point confirms
        ((4, 8, 16, 32), (16, 64, 256, 1024), 10_000),
        ((4, 8, 16, 32), (16, 64, 256, 1400), None),
    ],
)
def test_what_a_compiler_decides_is_foretold_from_points_that_are_on_its_line(sizes, counts, then):
    """Tracing counts: three points of it are enough."""
    found = Grown(sizes=sizes, facts={"temp_bytes": counts, "trace_calls": (16, 64, 256, 1024)[: len(sizes)]})
    assert found.at("temp_bytes", 100) == then
    assert found.at("trace_calls", 100) == 10_000


def grown(facts, parts=None, sizes=SIZES):
    """One size that is called layers."""
    return {"layers": Grown(sizes=sizes, facts=facts, parts=parts or {})}


LINEAR = {"trace_calls": (4000, 8000, 16000), "temp_bytes": (64, 128, 256)}
SQUARE = {"trace_calls": (16000, 64000, 256000), "temp_bytes": (64, 128, 256)}


def judged(now, before, *, same_compiler=True):
    """Name and status of what is not the same."""
    found = judge_growth(measurement(growth=now), baseline(growth=before), same_compiler=same_compiler)
    return [(one.name, one.status) for one in found]


CALLS, BYTES, ALL = "trace_calls over layers", "temp_bytes over layers", "growth over layers"
BUMPY = {"trace_calls": (9000, 1000, 9000), "temp_bytes": (64, 128, 256)}
JUDGED = {
    "the same": (grown(LINEAR), grown(LINEAR), []),
    "more by the same law": (grown({**LINEAR, "trace_calls": (40000, 80000, 160000)}), grown(LINEAR), []),
    "worse": (grown(SQUARE), grown(LINEAR), [(CALLS, Status.REGRESSED)]),
    "better": (grown(LINEAR), grown(SQUARE), [(CALLS, Status.IMPROVED)]),
    "no law any more": (grown(BUMPY), grown(LINEAR), [(CALLS, Status.UNDECIDED)]),
    "a law where there was none": (grown(SQUARE), grown(BUMPY), [(CALLS, Status.UNDECIDED)]),
    "other points without a law": (
        grown({**BUMPY, "trace_calls": (9000, 1000, 90000)}), grown(BUMPY), [(CALLS, Status.UNDECIDED)]
    ),
    "a call more or less": (grown({**BUMPY, "trace_calls": (9001, 1000, 8999)}), grown(BUMPY), []),
    "no sizes": ({}, grown(LINEAR), [(ALL, Status.INVALID)]),
    "other sizes": (grown(LINEAR, sizes=(2, 4, 8)), grown(LINEAR), [(ALL, Status.INVALID)]),
    "a fact that is not known any more": (
        grown({"trace_calls": (4000, 8000, 16000)}), grown(LINEAR), [(BYTES, Status.INVALID)]
    ),
    "a baseline without any": (grown(SQUARE), {}, []),
}  # fmt: skip


@pytest.mark.parametrize("what", JUDGED)
def test_laws_are_held_against_laws_and_points_where_there_is_none(what):
    """Numbers of the same law are judged elsewhere; what vanished is not passed over in silence."""
    now, before, found = JUDGED[what]
    assert judged(now, before) == found


def test_laws_that_a_baseline_does_not_hold_are_said_to_be_unheld():
    """They are told, with the option that keeps them."""
    growing = Growth(lambda layers: (layers,), layers=SIZES)
    now = replace(measurement(), growth=grown(SQUARE), growing=growing)
    for growth, said in (({}, True), (grown(SQUARE), False)):
        (told,) = judge_growth(now, baseline(growth=growth), same_compiler=True)
        assert (told.status, told.detail.endswith("holds none of them: --perf-update")) == (Status.SAME, said)


def test_what_another_compiler_decides_is_not_held_against_this_one():
    worse = grown({"trace_calls": (16000, 64000, 256000), "temp_bytes": (16, 64, 256)})
    assert len(judged(worse, grown(LINEAR))) == 2
    assert judged(worse, grown(LINEAR), same_compiler=False) == [("trace_calls over layers", Status.REGRESSED)]


def test_what_another_jax_counts_otherwise_is_not_held_against_this_one():
    """Its own functions are among the calls; and what a profiler keeps from being counted is left open."""
    now, before = measurement(growth=grown(SQUARE)), baseline(growth=grown(LINEAR))
    newer = replace(now, environment={**now.environment, "jax": "0.99.0"})
    assert not [one for one in judge_growth(newer, before, same_compiler=True) if one.status is not Status.SAME]
    uncounted = replace(
        now, growth=grown({"temp_bytes": (64, 128, 256)}), unknown={"trace_calls": "cProfile is at work"}
    )
    (found,) = judge_growth(uncounted, before, same_compiler=True)
    assert (found.status, "cProfile is at work" in found.detail) == (Status.UNDECIDED, True)


def claimed(*claims, facts=SQUARE, **more):
    """What is found without a baseline."""
    growing = Growth(lambda layers: (layers,), layers=SIZES, claims=claims, **more)
    return list(judge_growth(replace(measurement(), growth=grown(facts), growing=growing)))


def test_claims_need_no_baseline():
    """A broken one is red, and so is one about a fact that is not known; the laws are told."""
    held, broken, unknown, told = claimed(
        grows("trace_calls", "layers") <= 2, grows("trace_calls", "layers") <= 1, grows("kernels", "layers") <= 1
    )
    assert [one.status for one in (held, broken, unknown)] == [Status.SAME, Status.REGRESSED, Status.REGRESSED]
    assert (broken.kind, broken.name) == ("claim", "trace_calls over layers ≤ 1")
    assert told.detail == "trace_calls quadratic, temp_bytes linear (4, 8, 16)"


def test_what_a_target_does_not_say_at_some_size_is_open():
    """Neither a claim about it nor what the baseline knows of it can be judged, and the size is named."""
    unknown = {"kernels over layers": "at 8 its compiler finds no tiles"}
    growing = Growth(lambda layers: (layers,), layers=SIZES, claims=[grows("kernels", "layers") <= 1])
    now = replace(measurement(growth=grown(LINEAR), unknown=unknown), growing=growing)
    before = baseline(growth=grown({**LINEAR, "kernels": (7, 7, 7)}))
    claim, _, fact = judge_growth(now, before, same_compiler=True)
    for one in (claim, fact):
        assert (one.status, "at 8 its compiler finds no tiles" in one.detail) == (Status.UNDECIDED, True)


def test_what_will_be_is_told():
    """At the size that somebody asks about, of what has a law that says so."""
    (told,) = claimed(until={"layers": 96}, facts={"trace_calls": (16000, 64000, 256000), "kernels": (7, 7, 15)})
    assert told.detail.endswith("; at 96: trace_calls 9,216,000, kernels cannot be known")


def test_the_part_whose_law_got_worse_carries_it():
    """Not the largest, which grew before; what follows from it has no cause of its own."""
    parts = {"functions": {"large": (400, 800, 1600), "same": (6, 28, 120), "noisy": (9000, 9000, 9001)}}
    before = {"functions": {"large": (400, 800, 1600), "noisy": (9000, 9000, 9000)}}
    now, then = measurement(growth=grown(SQUARE, parts)), baseline(growth=grown(LINEAR, before))
    (cause,) = carries_growth(now, then)
    assert cause.text == "quadratic: same is called 6 → 28 → 120, with layers"
    assert cause.explains == {"trace_calls"}
    assert rank_causes(now, then, {"trace_calls"})[0] == cause
    assert not list(carries_growth(now, baseline(growth=grown(SQUARE, parts))))


MISUSE = {
    "two sizes": (lambda: Growth(print, layers=[2, 4]), "layers= expects 3 sizes or more"),
    "falling sizes": (lambda: Growth(print, layers=[8, 4, 2]), "whole numbers that rise, found [8, 4, 2]"),
    "no size": (lambda: Growth(print), "expects sizes by name"),
    "a size that is not there": (
        lambda: Growth(print, layers=SIZES, until={"steps": 9}),
        "no sizes were given for steps",
    ),
    "a fact that is none": (lambda: grows("speed", "layers") <= 1, "grows('speed', …) cannot be checked"),
}


@pytest.mark.parametrize("misuse", MISUSE)
def test_what_makes_no_sense_is_refused(misuse):
    make, said = MISUSE[misuse]
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is looked at
        make()
    assert said in str(error.value)
