"""What a duel decides: exact levels, order statistics by hand, margins, power, and the words of each verdict."""

import random
import re
from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, log

import pytest
from support.factories import CALL_NS, duel, mirrored, normal, steady

from jaxgate.judge.timing.duel import (
    CONFIRM_COUNT,
    LOOKS,
    bounds,
    count_needed,
    decide,
    decide_at_looks,
    is_settled,
    margin,
    noise,
    scaled,
    sign_level,
)
from jaxgate.model.decision import Status


def slower(count, by, pairs=60):
    """A duel where the last ``count`` of the pairs are slower by a ratio, and the others equal."""
    return duel([CALL_NS] * (pairs - count) + [round(CALL_NS * by)] * count)


# Levels and bounds


@pytest.mark.parametrize(
    ("count", "pairs", "ways"),
    [(17, 20, 1351), (28, 40, 9119901052), (39, 60, 15760514137668514), (41, 60, 3584203906519219)],
)
def test_levels_are_exact_binomial_tails(count, pairs, ways):
    """17 or more of 20: 1140 + 190 + 20 + 1 = 1351 ways of 2^20; the others are summed the same way, exactly."""
    assert sign_level(count, pairs) == pytest.approx(float(Fraction(ways, 2**pairs)), rel=1e-12)


def test_the_looks_have_the_levels_of_the_plan():
    """Counts at 20, 40 and 60 pairs and for a confirmation; one less would be too lenient for a confirmation."""
    assert LOOKS == {20: 17, 40: 28, 60: 39}
    assert CONFIRM_COUNT == 41
    assert [round(sign_level(LOOKS[pairs], pairs), 4) for pairs in LOOKS] == [0.0013, 0.0083, 0.0137]
    assert sign_level(41, 60) <= 0.005 < sign_level(40, 60)
    assert sum(sign_level(count, pairs) for pairs, count in LOOKS.items()) < 0.024  # all three looks together


@pytest.mark.parametrize(("pairs", "count", "low"), [(20, 17, 4), (40, 28, 13), (60, 39, 22), (60, 41, 20)])
def test_bounds_are_order_statistics(pairs, count, low):
    """39 of 60 makes the 22nd from either end: 39 values are at or above the one, 39 at or below the other."""
    values = list(range(1, pairs + 1))
    random.Random(1).shuffle(values)
    assert bounds(values, count) == (low, count)
    assert (sum(value >= low for value in values), sum(value <= count for value in values)) == (count, count)
    assert pairs + 1 - low == count  # symmetric: the same rank from above


@pytest.mark.parametrize(("pairs", "count"), [(7, 7), (10, 10), (30, 22), (50, 34)])
def test_between_looks_the_level_is_that_of_the_last_look(pairs, count):
    """7 of 7: 1/128 = 0.0078; 10 of 10, for 9 is 11/1024 = 0.0107 and passes; 22 of 30: 0.0081; 34 of 50: 0.0077."""
    expected = 9 if pairs == 10 else count
    assert count_needed(pairs) == expected
    assert sign_level(expected, pairs) <= 0.0136701 < sign_level(expected - 1, pairs)


# Decisions at the border


@pytest.mark.parametrize(
    ("pairs", "count", "asked"), [(20, 17, None), (40, 28, None), (60, 39, None), (60, 41, CONFIRM_COUNT)]
)
def test_the_count_decides(pairs, count, asked):
    """The planned count of pairs at +5 % is SLOWER, at -5 % FASTER; one less is not."""
    for ratio, status, word in ((1.05, Status.SLOWER, "slower"), (1 / 1.05, Status.FASTER, "faster")):
        found = decide(slower(count, ratio, pairs), count=asked)
        assert (found.status, found.pairs) == (status, pairs)
        assert found.reason == f"{count} of {pairs} pairs were more than 3.0% {word}"
        assert decide(slower(count - 1, ratio, pairs), count=asked).status is not status


def test_the_numbers_of_a_decision():
    """Ratio, bounds and call times by hand: 60 pairs at 1.00, 1.01 … 1.59 of 10 ms, bursts of 4 calls."""
    told = duel([CALL_NS + 100_000 * k for k in range(60)], calls=4)
    found = decide(told)
    assert found.ratio == pytest.approx((1.29 * 1.30) ** 0.5)  # median of the logarithms: between the 30th and 31st
    assert (found.low, found.high) == pytest.approx((1.21, 1.38))  # the 22nd and the 39th
    assert found.now_ns == pytest.approx(1.295 * CALL_NS / 4)
    assert found.baseline_ns == CALL_NS / 4
    assert found.sees == pytest.approx((1 + found.margin) * (found.ratio / 1.21) ** 1.58 - 1)


def test_identical_times_are_same():
    """No difference at all: SAME, and the smallest visible slow-down is the margin."""
    found = decide(duel([CALL_NS] * 20))
    assert (found.status, found.ratio, found.low, found.high) == (Status.SAME, 1.0, 1.0, 1.0)
    assert found.sees == pytest.approx(0.03)
    assert found.reason == "detectable slow-down 3.0%"


@pytest.mark.parametrize("by", [1.03, 1 / 1.03])
def test_a_difference_of_just_the_margin_does_not_count(by):
    """Exactly on the line is neither slower nor faster, whether the margin is the usual one or the case's own."""
    for own in (None, 0.03):
        assert decide(steady(by), own_margin=own).status in (Status.SAME, Status.UNDECIDED)


# Power: 100 seeded duels of 60 pairs, d normal with this deviation, line at ln 1.03 = 0.0296


@pytest.mark.parametrize(
    ("percent", "sd", "least", "most"),
    [
        (3, 0.02, 0, 5),  # on the line: 1.37 % by the sign test, less where noise widens the margin
        (5, 0.02, 95, 100),  # P(d > line) = Φ(0.96) = 0.83: 49.9 ± 2.9 of 60, 39 needed
        (10, 0.02, 99, 100),
        (20, 0.02, 99, 100),
        (3, 0.05, 0, 5),
        (5, 0.05, 30, 75),  # Φ(0.385) = 0.65: 39.0 of 60, a coin flip; a wider margin takes some
        (10, 0.05, 95, 100),  # Φ(1.31) = 0.905: 54.3 ± 2.3
        (20, 0.05, 99, 100),
    ],
)
def test_planted_slow_downs_are_seen(percent, sd, least, most):
    """A planted slow-down is called SLOWER as often as the sign test can, and its mirror FASTER."""
    ratio = 1 + percent / 100
    found = [decide(normal(seed, ratio, sd)).status for seed in range(100)]
    assert least <= found.count(Status.SLOWER) <= most
    assert Status.FASTER not in found
    mirror = [decide(normal(seed, 1 / ratio, sd)).status for seed in range(100)]
    assert least <= mirror.count(Status.FASTER) <= most
    assert Status.SLOWER not in mirror


@pytest.mark.parametrize(("sd", "least"), [(0.02, 98), (0.05, 80)])  # Φ((0.0296 - 0.36 sd) / 0.16 sd): 1.0 and 0.92
def test_identical_programs_with_noise_are_same(sd, least):
    """Nothing planted: SAME in nearly all cases, SLOWER and FASTER in none."""
    found = [decide(normal(seed, 1.0, sd)).status for seed in range(100)]
    assert found.count(Status.SAME) >= least
    assert {Status.SLOWER, Status.FASTER}.isdisjoint(found)


MIRROR = {Status.SLOWER: Status.FASTER, Status.FASTER: Status.SLOWER, None: None}


def accusation(found):
    """SLOWER or FASTER, which change places when the sides do; SAME and UNDECIDED accuse nobody."""
    return found.status if found.status in MIRROR else None


def test_swapping_the_sides_mirrors_every_look():
    """SLOWER and FASTER change places, ratio and bounds are inverted: a wrong sign cannot hide.

    A duel that stops at a look with an accusation stops there mirrored too, with the opposite one.
    """
    stopped = set()
    for seed in range(300):
        draw = random.Random(seed)
        told = normal(seed, draw.uniform(0.85, 1.18), draw.choice([0.01, 0.05, 0.1]))
        both = told, mirrored(told)
        for pairs in LOOKS:
            parts = [replace(one, now_ns=one.now_ns[:pairs], baseline_ns=one.baseline_ns[:pairs]) for one in both]
            ours, theirs = map(decide, parts)
            assert accusation(theirs) is MIRROR[accusation(ours)]
            assert (ours.now_ns, ours.baseline_ns) == (theirs.baseline_ns, theirs.now_ns)
            assert ours.low <= ours.ratio <= ours.high
            assert ours.ratio * theirs.ratio == pytest.approx(1)
            assert (ours.low * theirs.high, ours.high * theirs.low) == pytest.approx((1, 1))
            assert not accusation(ours) or all(map(is_settled, parts))
        first, second = map(decide_at_looks, both)
        if first.pairs == second.pairs:  # SAME asks what a slow-down would have shown: it may stop one side earlier
            assert accusation(second) is MIRROR[accusation(first)]
            stopped.add((first.status, first.pairs))
    assert {(status, pairs) for status in (Status.SLOWER, Status.FASTER) for pairs in LOOKS} <= stopped


def test_scaling_one_side_is_unscaling_the_other():
    """A planted slow-down of today's program is a planted speed-up of the mirrored duel, at every look."""
    for seed in range(100):
        told = normal(seed, 1.0, 0.02)
        for factor in (1.1, 1.3, 2.0):
            slow, fast = decide_at_looks(scaled(told, factor)), decide_at_looks(scaled(mirrored(told), 1 / factor))
            assert (slow.status, fast.status) == (Status.SLOWER, Status.FASTER)
            assert slow.pairs == fast.pairs
            assert slow.ratio * fast.ratio == pytest.approx(1, rel=1e-6)


# Margin


def wobbling(by, pairs=60):
    """Both sides take longer by a ratio in the second half of every block: pairs are equal, halves differ."""
    halves = [CALL_NS, round(CALL_NS * by)] * (pairs // 2)
    return duel(halves, halves)


QUIET = duel([CALL_NS] * 60)


@pytest.mark.parametrize(
    ("told", "own", "wanted"),
    [
        (QUIET, None, 0.03),  # without noise 3 %, or what the case says, even if that is less
        (QUIET, 0.01, 0.01),
        (QUIET, 0.08, 0.08),
        # of 60 halves 30 are +8 % and 30 -8 %: the 20th and the 41st are these, so the half-width is ln 1.08
        (wobbling(1.08), None, 0.08),
        (wobbling(1.08), 0.12, 0.12),
        (wobbling(1.02), None, 0.03),
        # 20 halves, the 4th and the 17th (level 0.0013): ln 1.08 again, times the root of 20/60
        (wobbling(1.08, pairs=20), None, exp(log(1.08) * (1 / 3) ** 0.5) - 1),
        # 500 ns of a 10 µs call are 5 %, whatever the number of calls in a burst
        (duel([10_000] * 60, [10_000] * 60), None, 0.05),
        (duel([CALL_NS] * 60, calls=1000), None, 0.05),
        # noise of 40 %, a call of 1 µs, an own margin of 50 %: never more than 15 %
        (wobbling(1.4), None, 0.15),
        (duel([1000] * 60, [1000] * 60), None, 0.15),
        (QUIET, 0.5, 0.15),
    ],
)
def test_the_margin(told, own, wanted):
    """The case's own or 3 %, the noise where that is more, and the floor of a short call."""
    assert margin(told, own) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("told", "own", "status"),
    [
        (slower(60, 1.05), 0.08, Status.SAME),
        (slower(60, 1.02), 0.01, Status.SLOWER),
        (duel([10_400] * 60, [10_000] * 60), None, Status.SAME),
        (duel([10_600] * 60, [10_000] * 60), None, Status.SLOWER),
    ],
)
def test_a_duel_is_decided_by_its_margin(told, own, status):
    assert decide(told, own_margin=own).status is status


def test_drift_is_not_noise():
    """0.1 % more with each half-round, ABBA and BAAB: of 60 halves 15 each are -3, -1, +1 and +3 steps; ±1 remains."""
    draw, step = random.Random(3), 0.001
    for _ in range(20):
        times = ([], [])
        for block in range(30):
            first = draw.randrange(2)
            for place, side in enumerate((first, 1 - first, 1 - first, first)):
                times[side].append(round(CALL_NS * exp(step * (4 * block + place))))
        told = duel(*times)
        assert noise(told) == pytest.approx(step, rel=0.01)
        assert decide(told).status is Status.SAME
        assert decide(told).ratio == pytest.approx(1, abs=0.0011)


# UNDECIDED


def wide(by, pairs=60):
    """Half of the pairs slower, half of them faster by a ratio; blocks are equal, so there is no noise."""
    return duel([round(CALL_NS * (by if pair // 2 % 2 else 1 / by)) for pair in range(pairs)])


def test_same_is_refused_where_too_little_would_show():
    """Bounds at ±10 %: a slow-down of 1.03 · 1.1^1.58 = 1.197 would show, 10 % is asked for; never SAME."""
    found = decide(wide(1.1))
    assert found.status is Status.UNDECIDED
    assert found.sees == pytest.approx(1.03 * 1.1**1.58 - 1, rel=1e-6)
    assert found.reason.startswith("detectable slow-down 19.7%, 10% is asked for; ")


def test_the_pairs_needed_are_those_that_suffice():
    """The distance of the bound shrinks with √n, the margin stays: n = 60 (1.58 ln 1.1 / ln(1.1 / 1.03))² = 315."""
    needed = 60 * (1.58 * log(1.1) / log(1.1 / 1.03)) ** 2
    (pairs,) = re.findall(r"about ([\d,]+) pairs would be needed", decide(wide(1.1)).reason)
    assert int(pairs.replace(",", "")) == ceil(needed / 10) * 10 == 320


def test_no_number_of_pairs_is_promised_where_the_margin_hides_the_threshold():
    """A call of 1 µs has a margin of 15 %: 10 % will not show in any number of pairs, and the reason says so."""
    found = decide(duel([1000] * 60, [1000] * 60))
    assert found.status is Status.UNDECIDED
    assert "15.0%" in found.reason
    assert "pairs would be needed" not in found.reason


def test_near_the_margin_is_undecided():
    """38 of 60 at +4 %: not enough for SLOWER, and too many for SAME; no further pairs are asked for."""
    found = decide(slower(38, 1.04))
    assert found.status is Status.UNDECIDED
    assert found.sees == pytest.approx(1.03 * 1.04**1.58 - 1, rel=1e-6)
    assert found.reason == "neither within nor beyond the margin of 3.0%"


def test_the_threshold_is_the_caller_s():
    """The same pairs are SAME where 20 % is asked for, and carry the threshold that was in force."""
    assert decide(wide(1.02)).status is Status.SAME
    found = decide(wide(1.02), threshold=0.05)
    assert (found.status, found.threshold) == (Status.UNDECIDED, 0.05)


# Looks


@pytest.mark.parametrize("pairs", [2, 10, 18, 22, 38, 42, 58])
def test_a_duel_does_not_stop_between_looks(pairs):
    assert not is_settled(duel([2 * CALL_NS] * pairs))


def test_a_duel_stops_at_a_look_with_a_decision():
    """SLOWER, FASTER and SAME stop at 20 and 40; UNDECIDED goes on, until 60."""
    for pairs in (20, 40, 60):
        assert is_settled(duel([2 * CALL_NS] * pairs))
        assert is_settled(duel([CALL_NS // 2] * pairs))
        assert is_settled(duel([CALL_NS] * pairs))
        assert is_settled(wide(1.3, pairs)) is (pairs == 60)
    assert not is_settled(wide(1.02, 40), threshold=0.05)
    assert not is_settled(slower(20, 1.05, 20), own_margin=0.05)
