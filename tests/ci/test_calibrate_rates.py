"""Error rates out of duels, counted by hand, for identical programs and for slow-downs planted both ways; and their tables."""

import pytest
from support.factories import CALL_NS, HARDWARE, duel, steady

from ci.calibrate.rates import PLANTS, Planted, noise_floor, rate_bound, rates
from ci.calibrate.tables import tables
from jaxgate.model.duel import BrokenDuelError


def calibrated(duels, **changes):
    """A calibration of these duels, each of which took 3 seconds."""
    arguments = {"planted": {}, "executables": 4, "confirmed": 0, "duel_s": [3.0] * len(duels), "took_s": 9.0}
    return rates("scan/rnn", HARDWARE, duels, **(arguments | changes))


def test_identical_programs_are_counted():
    """Of five duels one is 4 % slower, one 4 % faster: one alarm, and the floor of the faster one, 1 / 0.96."""
    row = calibrated([steady(1.0), steady(1.01), steady(1.04), steady(0.96), steady(0.995)], confirmed=1)
    assert (row.case, row.hardware, row.duels, row.executables) == ("scan/rnn", HARDWARE, 5, 4)
    assert (row.alarms, row.confirmed, row.undecided) == (1, 1, 0)
    assert row.ratios == pytest.approx((1.0, 1.01, 1.04, 0.96, 0.995))
    assert row.floor == pytest.approx(1 / 0.96 - 1)
    assert (row.margin, row.call_ns, row.took_s) == (pytest.approx(0.03), CALL_NS, 9.0)


def test_a_duel_costs_its_share_of_pairs():
    """All decided at the first look of 20 pairs of 60: a third of what the whole duels took."""
    row = calibrated([steady(1.0), steady(1.0)], duel_s=[3.0, 6.0])
    assert row.cost_s == pytest.approx((3.0 + 6.0) / 2 / 3)


def test_scaled_slow_downs_are_counted_at_their_size():
    """Programs that differ by 0 and by 1 %: +3 % is seen in the second alone, everything above in both."""
    row = calibrated([steady(1.0), steady(1.01)])
    assert [(plant.share, plant.scaled) for plant in row.plants] == [(0.03, 0.5), (0.05, 1), (0.10, 1), (0.20, 1)]


def test_extra_work_is_counted_at_its_measured_size():
    """Wanted 5 %, really 6 % (the median of 2, 6 and 8 %), two of three seen: none of it is taken from scaled times."""
    real = [steady(1.02), steady(1.06), steady(1.08)]
    row = calibrated([steady(1.0)], planted={0.05: Planted(duels=real), 0.10: Planted(why_not="too short")})
    (small, wanted, refused, large) = row.plants
    assert wanted.slower == 2
    assert wanted.ratios == pytest.approx((1.02, 1.06, 1.08))
    assert (refused.ratios, refused.why_not) == ((), "too short")
    assert (small.ratios, large.ratios, small.why_not) == ((), (), "")
    assert [plant.share for plant in row.plants] == list(PLANTS)


def test_extra_work_never_moves_the_floor():
    """The floor is learnt from identical programs alone."""
    row = calibrated([steady(1.001)], planted={0.20: Planted(duels=[steady(1.2)])})
    assert row.floor == pytest.approx(0.001)


def test_a_duel_that_traced_is_refused():
    """Times taken while something compiled mean nothing."""
    with pytest.raises(BrokenDuelError, match="expected no trace"):
        calibrated([steady(1.0), steady(1.0, traces=1)])


@pytest.mark.parametrize(
    ("events", "trials", "bound"),
    [(0, 299, 1 - 0.05 ** (1 / 299)), (0, 1, 0.95), (0, 0, 1.0), (5, 5, 1.0), (1, 2, 0.95**0.5)],
)
def test_the_bound_of_a_rate_is_exact(events, trials, bound):
    """No event: 1 - 0.05^(1/n); one of two: the root of 1 - p^2 = 0.05; all of them, or no trial: 1."""
    assert rate_bound(events, trials) == pytest.approx(bound, rel=1e-9)


def test_299_duels_without_an_alarm_bound_the_rate_at_one_per_cent():
    """The number that the documentation asks for, and not one less."""
    assert rate_bound(0, 299) < 0.01 < rate_bound(0, 298)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [((1.0,), 0.0), ((1.0, 1.04, 0.99), 0.04), ((1.02, 1 / 1.07), 0.07), ((0.9, 1.1), 1 / 0.9 - 1)],
)
def test_the_floor_is_the_largest_deviation_either_way(ratios, expected):
    """A program faster than itself by 1 / 1.07 tells as much as one 7 % slower; a wild pair of sixty does not."""
    assert noise_floor([duel([CALL_NS] * 59 + [2 * CALL_NS])]) == 0
    assert noise_floor([steady(ratio) for ratio in ratios]) == pytest.approx(expected, abs=1e-6)


def test_the_tables_hold_every_figure():
    """Counts, shares and sizes as a person reads them; real extra work beside its measured size, or why there is none."""
    planted = {0.05: Planted(duels=[steady(1.02), steady(1.06), steady(1.08)]), 0.10: Planted(why_not="too short")}
    row = calibrated([steady(1.0), steady(1.04)], planted=planted, confirmed=1)
    text = tables([row], {"scan/broken": "it was not stored"})
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "scan/rnn |" in line
    ]
    assert cells == [
        ["scan/rnn", "10 ms", "2", "1", "1", "0%", "3.0%", "3.0%", "4.0%", "1.0 s"],
        ["scan/rnn", "50% / –", "100/67% (6.0%)", "100% / –", "100% / –"],
    ]
    assert "scan/rnn, extra work of 10%: too short" in text
    assert (
        "2 duels of identical programs in 4 pairs of executables: 1 false alarm at the first stage, 1 confirmed" in text
    )
    assert "is below 97.47%" in text
    assert "A duel costs 1.0 s on average, looks allowed; calibrating took 9 s." in text
    assert text.endswith("scan/broken could not be calibrated: it was not stored")
