"""Claims about run time: what a duel of subject and reference decides, in both directions, and what is never green."""

import random
from math import exp

import pytest
from support.factories import CALL_NS, CASE, baseline, duel, measurement, mirrored, normal, record, reference, steady

from jaxgate.ext.upgrade.launches import judge_environment
from jaxgate.judge.claims import are_settled, breaks, check_claims, check_run_claim, decide_claim, hold
from jaxgate.judge.order import waits_for_confirmation
from jaxgate.judge.timing.duel import CONFIRM_COUNT
from jaxgate.judge.verdict import judge
from jaxgate.model.baseline import Launches
from jaxgate.model.claim import Claim, claim
from jaxgate.model.decision import Status
from jaxgate.model.duel import BrokenDuelError, ReferenceDuel
from jaxgate.report.summary import summary

MIRRORED = {Status.SLOWER: Status.FASTER, Status.FASTER: Status.SLOWER}


def check(claim, told, **changes):
    """The finding of one claim about run time."""
    return check_run_claim(claim, measurement(reference=reference(), **changes), told)


# What may be claimed


def test_run_time_is_claimed_against_the_reference():
    """It reads like every other claim, and needs a duel."""
    stated = claim("run_ns <= 0.8 * reference")
    assert (str(stated), stated.needs_duel) == ("run_ns ≤ 0.8 × reference", True)
    assert not claim("compile_ns <= 0.5 * reference").needs_duel


NONSENSE = {
    "another quantity": {"relation": "<=", "factor": 2.0, "other": "compile_ns"},
    "a number": {"relation": "<=", "factor": 1e6, "other": "one"},
    "itself": {"relation": "<=", "factor": 2.0, "other": "run_ns"},
    "on the right side": {"quantity": "compile_ns", "relation": "<=", "factor": 2.0, "other": "run_ns"},
    "nothing": {"relation": "<=", "factor": 0.0},
    "negative": {"relation": ">=", "factor": -1.0},
    "infinite": {"relation": "<=", "factor": float("inf")},
    "not a number": {"relation": "<=", "factor": float("nan")},
    "equality": {"relation": "=="},
    "equality with a number": {"relation": "==", "factor": 5, "other": "one"},
    "another relation": {"relation": "<"},
}


@pytest.mark.parametrize("what", NONSENSE)
def test_what_no_duel_decides_is_refused(what):
    """Another side, equality of times, a factor that is no ratio: refused when it is written down, saying what is expected."""
    with pytest.raises(
        ValueError, match=r"expected 'run_ns <= 0.8 \* reference' or 'run_ns >= 2 \* reference', with a positive factor"
    ):
        Claim(**{"quantity": "run_ns", **NONSENSE[what]})


# The decision


SAME = "within 3.0% of that; detectable beyond it: 3.0%"
BEYOND = "60 of 60 pairs were more than 3.0% {} than that"


@pytest.mark.parametrize(
    ("formula", "status", "holds", "reason"),
    [
        ("run_ns <= reference", Status.SLOWER, False, BEYOND.format("slower")),
        ("run_ns <= 1.16 * reference", Status.SLOWER, False, BEYOND.format("slower")),  # 1.2 / 1.16 = 1.034
        ("run_ns <= 1.17 * reference", Status.SAME, True, "within 3.0% of that"),  # 1.2 / 1.17 = 1.026
        ("run_ns <= 1.2 * reference", Status.SAME, True, SAME),
        ("run_ns <= 1.3 * reference", Status.FASTER, True, BEYOND.format("faster")),
        ("run_ns >= reference", Status.SLOWER, True, BEYOND.format("slower")),
        ("run_ns >= 1.2 * reference", Status.SAME, True, SAME),
        ("run_ns >= 1.23 * reference", Status.SAME, True, "within 3.0% of that"),  # 1.23 / 1.2 = 1.025
        ("run_ns >= 1.24 * reference", Status.FASTER, False, BEYOND.format("faster")),  # 1.24 / 1.2 = 1.033
        ("run_ns >= 3 * reference", Status.FASTER, False, BEYOND.format("faster")),
    ],
)
def test_a_subject_of_1_2_times_its_reference(formula, status, holds, reason):
    """The limit is the factor times the reference; the decision is that of a duel with it, in the subject's words."""
    stated = claim(formula)
    found = decide_claim(stated, steady(1.2))
    assert found.status is status
    assert found.reason.startswith(reason)
    assert hold([stated], steady(1.2)) is holds
    assert check(stated, ReferenceDuel(duel=steady(1.2))).status is (Status.SAME if holds else Status.REGRESSED)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.2, 1.2, 1.2))  # of the sides, not of the limit
    assert (found.now_ns, found.baseline_ns, found.pairs) == (12_000_000, 10_000_000, 60)


def test_a_limit_within_the_spread_is_undecided():
    """30 pairs at 0.9 and 30 at 1.1 times: nothing holds and nothing is broken at 1; the figures are those of the sides."""
    told = duel([9_000_000] * 30 + [11_000_000] * 30)
    for stated in (claim("run_ns <= reference"), claim("run_ns >= reference")):
        found = decide_claim(stated, told)
        assert (found.status, found.low, found.high) == (Status.UNDECIDED, pytest.approx(0.9), pytest.approx(1.1))
        assert found.reason.startswith("60 pairs give 0.90 to 1.10 ×: too close to decide, margin ")
        assert not hold([stated], told)
        assert check(stated, ReferenceDuel(duel=told)).status is Status.UNDECIDED


def test_a_difference_of_500_ns_in_a_call_is_nothing():
    """2 µs against a limit of 1.7 µs: the quicker side decides what 500 ns are, here more than the 15 % that a margin may be."""
    told = duel([2_000_000] * 60, calls=1000)
    found = decide_claim(claim("run_ns <= 0.18 * reference"), told)  # 11 % beyond
    assert (found.status, found.margin) == (Status.UNDECIDED, 0.15)
    assert decide_claim(claim("run_ns <= 0.17 * reference"), told).status is Status.SLOWER  # 18 % beyond
    assert decide_claim(claim(f"run_ns >= {1 / 0.18} * reference"), mirrored(told)).margin == 0.15


def test_exchanging_the_sides_and_inverting_the_factor_exchanges_the_limits():
    """``subject <= f x reference`` and ``reference >= 1/f x subject`` are one statement, decided alike on any duel."""
    seen = set()
    for seed in range(40):
        draw = random.Random(seed)
        factor = exp(draw.uniform(-2, 2))
        told = normal(seed, factor * exp(draw.gauss(0, 0.08)), draw.choice([0.01, 0.05, 0.2]))
        upper = decide_claim(claim(f"run_ns <= {factor} * reference"), told)
        lower = decide_claim(claim(f"run_ns >= {1 / factor} * reference"), mirrored(told))
        seen.add(upper.status)
        assert lower.status is MIRRORED.get(upper.status, upper.status)
        assert (lower.margin, lower.sees) == (upper.margin, upper.sees)
        assert (1 / lower.ratio, 1 / lower.high, 1 / lower.low) == pytest.approx((upper.ratio, upper.low, upper.high))
        assert hold([claim(f"run_ns <= {factor} * reference")], told) is hold(
            [claim(f"run_ns >= {1 / factor} * reference")], mirrored(told)
        )
    assert seen == {Status.SLOWER, Status.FASTER, Status.SAME, Status.UNDECIDED}


@pytest.mark.parametrize("sd", [0.02, 0.05, 0.1])
def test_noise_does_not_hide_what_is_three_times_as_long(sd):
    """20 duels at each noise: 3 times the reference's work always breaks ``at most 1``, and identical work never ``at most 1.1``."""
    for seed in range(20):
        assert decide_claim(claim("run_ns <= reference"), normal(seed, 3.0, sd)).status is Status.SLOWER
        assert decide_claim(claim("run_ns >= reference"), normal(seed, 1 / 3, sd)).status is Status.FASTER
        assert decide_claim(claim("run_ns <= 1.1 * reference"), normal(seed, 1.0, sd)).status is not Status.SLOWER


def test_a_confirmation_needs_more_pairs():
    """40 of 60 pairs beyond the limit break it in the first process and not in a fresh one."""
    told = duel([CALL_NS] * 20 + [13_000_000] * 40)
    assert decide_claim(claim("run_ns <= reference"), told).status is Status.SLOWER
    assert decide_claim(claim("run_ns <= reference"), told, count=CONFIRM_COUNT).status is Status.UNDECIDED


@pytest.mark.parametrize(
    "told",
    [duel([]), steady(1.2, 4), steady(1, traces=1), duel([0] * 60), duel([CALL_NS] * 60, [0] * 60)],
    ids=["no pair", "few pairs", "traced", "clock", "clock of the reference"],
)
@pytest.mark.parametrize("claim", [claim("run_ns <= 2 * reference"), claim("run_ns >= 0.1 * reference")])
def test_times_that_mean_nothing_are_refused(told, claim):
    """Neither held nor broken: an error, as for every duel."""
    with pytest.raises(BrokenDuelError):
        decide_claim(claim, told)


# When to stop


def test_a_duel_stops_when_every_claim_is_decided():
    """20 pairs decide a limit far away and not one within the spread; at 60 it is over either way."""
    clear, close = claim("run_ns <= 3 * reference"), claim("run_ns <= reference")
    told = {pairs: duel([9_000_000, 11_000_000] * (pairs // 2)) for pairs in (10, 20, 40, 60)}
    assert [are_settled([clear], told[pairs]) for pairs in (10, 20, 40, 60)] == [False, True, True, True]
    assert [are_settled([clear, close], told[pairs]) for pairs in (10, 20, 40, 60)] == [False, False, False, True]
    assert are_settled([close, claim("run_ns >= 0.1 * reference")], told[20]) is False


# The finding


def test_a_broken_claim_has_its_numbers():
    """Both times of a call, what was allowed, the duel, and why it was claimed."""
    stated = claim("run_ns <= 0.8 * reference", "fused")
    *_, found = check_claims((stated,), measurement(reference=reference()), ReferenceDuel(duel=steady(1.2)))
    assert (found.kind, found.name, found.status) == ("claim", "run_ns ≤ 0.8 × reference", Status.REGRESSED)
    assert (found.now, found.against, found.allowed) == (12_000_000, 10_000_000, 8_000_000)
    assert (found.detail, found.confirmed, found.remembered) == ("fused", (), False)
    assert found.decision is not None
    assert found.decision.status is breaks(stated) is Status.SLOWER


def test_a_duel_of_an_earlier_run_says_so():
    found = check(claim("run_ns <= 2 * reference"), ReferenceDuel(duel=steady(1.2), remembered=True))
    assert (found.status, found.remembered) == (Status.SAME, True)


def test_without_a_duel_it_is_undecided_and_says_why():
    """Never green in silence, also where nobody thought of a reason."""
    stated = claim("run_ns <= 0.8 * reference")
    found = check(stated, ReferenceDuel(why_not="the budget for duels is spent"))
    assert (found.status, found.now, found.detail) == (Status.UNDECIDED, None, "the budget for duels is spent")
    *_, forgotten = check_claims((stated,), measurement(reference=reference()))
    assert (forgotten.status, forgotten.detail) == (Status.UNDECIDED, "no duel was run")


def test_without_a_reference_it_is_invalid():
    """As every claim about a reference, whatever was timed."""
    found = check_run_claim(claim("run_ns <= 0.8 * reference"), measurement(), ReferenceDuel(duel=steady(0.5)))
    assert (found.status, found.detail) == (Status.INVALID, "cannot be checked: the case has no reference")


# The verdict


def verdict(told, *claims, **changes):
    """The verdict of a case with an identical program, a reference and claims."""
    now = measurement(reference=reference(), **changes)
    return judge(CASE, claims, now, record(), strict=True, reference_duel=told)


def test_a_broken_claim_is_blamed_on_what_grew():
    """The cause of a slow-down, as of any other; nobody is blamed where the claim holds."""
    grown = {"stablehlo.add 8x64xf32": 99}
    (cause,) = verdict(ReferenceDuel(duel=steady(1.2)), TIMED, operations=grown).causes
    assert str(cause).startswith("perhaps stablehlo.add 8x64xf32 37 → 99")
    assert verdict(ReferenceDuel(duel=steady(0.7)), TIMED, operations=grown).causes == ()


TIMED, COUNTED = claim("run_ns <= 0.8 * reference"), claim("temp_bytes <= 0.5 * reference")


@pytest.mark.parametrize(
    ("told", "claims", "facts", "status", "waits"),
    [
        (ReferenceDuel(duel=steady(0.7)), [TIMED], {}, Status.SAME, False),
        (ReferenceDuel(duel=steady(1.2)), [TIMED], {}, Status.REGRESSED, True),
        (ReferenceDuel(why_not="no clock"), [TIMED], {}, Status.UNDECIDED, False),
        (ReferenceDuel(duel=steady(1.2)), [TIMED, COUNTED], {}, Status.REGRESSED, False),
        (ReferenceDuel(duel=steady(1.2)), [TIMED], {"traces": 2}, Status.REGRESSED, False),
    ],
    ids=["holds", "broken", "not timed", "beside another claim", "beside a fact"],
)
def test_the_claim_decides_the_case(told, claims, facts, status, waits):
    """SAME by identity against the baseline hides none; what only the clock makes red waits for fresh processes."""
    found = verdict(told, *claims, facts=facts)
    assert (found.time.status, found.status) == (Status.SAME, status)
    assert found.fails is (status is Status.REGRESSED)
    assert waits_for_confirmation(found) is waits


def test_the_deterministic_claim_stands_first():
    """Of two broken claims the one that needs no clock is named."""
    stated = (claim("run_ns <= 0.8 * reference"), claim("temp_bytes <= 0.5 * reference"))
    found = verdict(ReferenceDuel(duel=steady(1.2)), *stated)
    assert [finding.name for finding in found.findings[:2]] == [str(stated[1]), str(stated[0])]


def test_where_environments_are_compared_it_is_undecided():
    """No duel is run there: said in the verdict and in its line, never passed over."""
    before = baseline()
    sides = Launches(here=(before,) * 5, there=(before,) * 5, why_not="")
    now = measurement(reference=reference())
    found = judge_environment(CASE, (claim("run_ns <= 0.8 * reference"),), now, sides, other="jax==0.10.2")
    assert (found.status, found.fails) == (Status.UNDECIDED, False)
    ((_, _, line),) = summary([found], width=None, environments=True)
    assert line.endswith("undecided: run_ns ≤ 0.8 × reference: no duel is run where environments are compared")
