"""The chain of time: which ratios multiply into a drift, which never do, and what is unknown stays so."""

from dataclasses import replace
from math import log, sqrt

import pytest
from support.history_points import Z, commit, day, named, point, refreshes

from jaxgate.ext.history.chain import chain_times, drift_of

FIRST = named("p0", 0)
ERROR = sqrt((log(1.01) / Z) ** 2 + 0.005**2)
"""Of a ratio with bounds of 1 %: its own, and that two compiles differ."""


def drift(*points):
    """What the newest of them drifted."""
    chain = chain_times(points)
    assert chain is not None
    return drift_of(chain)


def test_accepted_ratios_multiply_and_their_errors_add_up():
    """Twelve refreshes of 0.8 %: by hand, 1.008 to the twelfth, and the error of one times the root of twelve."""
    found = drift(*refreshes(*[1.008] * 12))
    assert found.ratio == pytest.approx(1.008**12)
    assert (log(found.high / found.ratio), log(found.ratio / found.low)) == pytest.approx([Z * ERROR * sqrt(12)] * 2)
    assert ([one.within for one in found.accepted], found.gap) == ([True] * 12, "")
    assert found.step == pytest.approx(1.008)
    assert found.since == day(0)
    assert [one.commit for one in found.accepted] == [commit(number) for number in range(1, 13)]


def test_todays_ratio_and_its_error_are_part_of_it():
    """Two refreshes, and a run of a changed program."""
    *known, _ = refreshes(1.02, 1.03)
    found = drift(*known, point(3, "p3", named("p2", 2), 1.01))
    assert found.ratio == pytest.approx(1.02 * 1.03 * 1.01)
    assert log(found.high / found.ratio) == pytest.approx(Z * ERROR * sqrt(3))
    assert not found.until_baseline


def test_the_same_program_is_exactly_its_baselines():
    """SAME without a ratio: no error, also after the same program was recorded again."""
    found = drift(point(1, "p0", FIRST), point(2, "p0", named("p0", 2)))
    assert (found.ratio, found.low, found.high, found.accepted) == (1, 1, 1, ())


def test_a_refresh_without_a_ratio_takes_the_last_earlier_run_of_that_program():
    """The program was judged on the day before it was recorded; what another program had then is no answer."""
    seen = [point(1, "p1", FIRST, 1.02), point(2, "p1", FIRST, 1.04), point(3, "p2", FIRST, 1.5)]
    recorded = point(4, "p1", FIRST, recorded="refreshed", time_status="UNDECIDED")
    found = drift(*seen, recorded, point(5, "p1", named("p1", 4)))
    assert found.ratio == pytest.approx(1.04)


def test_a_ratio_against_an_older_baseline_is_no_link_of_a_newer_one():
    """p9 was held against the first baseline only; the second one's chain ends there."""
    points = [point(1, "p9", FIRST, 1.3), point(2, "p1", FIRST, 1.02, recorded="refreshed")]
    points += [point(3, "p1", named("p1", 2)), point(4, "p9", named("p9", 4))]
    found = drift(*points)
    assert found.ratio == 1
    assert (
        found.gap
        == f"no duel holds the baseline of {day(4)} ({commit(4)[:10]}) against that of {day(2)} ({commit(2)[:10]})"
    )
    assert found.since == day(4)


def test_a_baseline_of_unknown_ratio_is_a_gap_and_never_guessed():
    """Nobody measured p1 beside p0: what came before is unknown, and said so; later links count from there."""
    known = [
        point(1, "p0", FIRST),
        point(2, "p1", named("p1", 1)),
        point(3, "p2", named("p1", 1), 1.05, recorded="refreshed"),
    ]
    found = drift(*known, point(4, "p2", named("p2", 3)))
    assert found.ratio == pytest.approx(1.05)
    assert found.gap.startswith("no duel holds the baseline of 2026-03-03")


@pytest.mark.parametrize(
    "changes", [{"elsewhere": "--perf-against main"}, {"source": "pytest-benchmark"}, {"status": "INVALID"}]
)
def test_what_is_no_link(changes):
    """Runs against something else, imported ones and those that could not be judged neither drift nor link."""
    odd = point(2, "p1", FIRST, 3.0, **changes)
    assert drift(point(1, "p0", FIRST), odd).ratio == 1
    assert chain_times([odd]) is None
    found = drift(point(1, "p0", FIRST), odd, point(3, "p1", named("p1", 2)))
    assert (found.ratio, bool(found.gap)) == (1, True)


def test_branches_take_turns_with_two_baselines():
    """A branch refreshes, the trunk still has the old one, the branch is merged: one refresh, not three."""
    branch = point(1, "p1", FIRST, 1.1, recorded="refreshed")
    trunk = point(2, "p0", FIRST)
    merged = point(3, "p1", named("p1", 1))
    found = drift(branch, trunk, merged, trunk, merged)
    assert found.ratio == pytest.approx(1.1)
    assert len(found.accepted) == 1
    assert drift(branch, merged, trunk).ratio == 1


def test_a_created_baseline_is_the_first():
    created = point(0, "p0", None, recorded="created", time_status="NO_BASELINE")
    found = drift(created, point(1, "p1", named("p0", 0), 1.07))
    assert (found.ratio, found.since) == (pytest.approx(1.07), day(0))
    assert drift(created).ratio == 1
    assert chain_times([replace(created, recorded="")]) is None


def test_a_run_without_a_known_time_shows_its_baselines_drift():
    """UNDECIDED without a ratio, or with one whose error nobody knows: never taken for exact."""
    *known, _ = refreshes(1.02)
    for today in (
        point(3, "p5", named("p1", 1), time_status="UNDECIDED"),
        point(3, "p5", named("p1", 1), 1.2, low=None, high=None),
        point(3, "p5", named("p1", 1), 0.0),
    ):
        found = drift(*known, today)
        assert found.ratio == pytest.approx(1.02)
        assert found.until_baseline


@pytest.mark.parametrize("status", ["SLOWER", "WAIVED"])
def test_a_refresh_that_the_gate_did_not_let_pass_is_beyond(status):
    """The one whose verdict was SLOWER, or which somebody accepted by name; the sum is the same."""
    first, second, last = refreshes(0.9, 1.2)
    found = drift(first, replace(second, time_status=status), last)
    assert [one.within for one in found.accepted] == [True, False]
    assert found.ratio == pytest.approx(0.9 * 1.2)


def test_programs_without_a_fingerprint_are_never_the_same():
    """Two empty names are two unknown programs: a gap, whatever stood beside them."""
    seen = point(1, "", named("", 0), 1.3)
    found = drift(seen, point(2, "", named("", 2)))
    assert found.ratio == 1
    assert found.gap


def test_the_same_program_with_other_options_has_its_measured_ratio():
    """Compiled otherwise it is another one for the clock: what was measured counts, not the name."""
    found = drift(point(1, "p0", FIRST, 1.2, recorded="refreshed"), point(2, "p0", named("p0", 1)))
    assert found.ratio == pytest.approx(1.2)
    assert len(found.accepted) == 1
