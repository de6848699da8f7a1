"""The margin that a calibration gives: where it holds, what it changes, and that it makes nothing green."""

from dataclasses import replace

import pytest
from support import factories
from support.factories import ENVIRONMENT, HARDWARE, OTHER_CPU

from jaxgate.judge.timing.calibration import name_margin, own_margin, why_not_applied
from jaxgate.judge.timing.duel import MAX_MARGIN, decide, is_settled
from jaxgate.model.calibration import FLOORS_SCHEMA, NoiseFloor, NoiseFloors
from jaxgate.model.decision import Status


def duel(*ratios, pairs=60):
    """A duel whose pairs take the ratios in turn."""
    return factories.duel([round(factories.CALL_NS * ratios[pair % len(ratios)]) for pair in range(pairs)])


def floor(share, duels=51):
    """What a calibration found."""
    return NoiseFloor(floor=share, duels=duels, date="2026-11-20")


def judged(found, share):
    """A duel judged with a floor, as a run does."""
    known = floor(share)
    return name_margin(decide(found, own_margin=own_margin(known)), known)


@pytest.mark.parametrize(("share", "margin"), [(0.0, 0.03), (0.02, 0.03), (0.05, 0.05), (0.12, 0.12)])
def test_a_floor_only_widens_a_margin(share, margin):
    assert own_margin(floor(share)) == margin
    assert decide(duel(1.0), own_margin=own_margin(floor(share))).margin == pytest.approx(margin)


def test_no_calibration_changes_nothing():
    """Without a floor the decision is that of today, word for word."""
    assert own_margin(None) is None
    assert name_margin(decide(duel(1.0)), None) == decide(duel(1.0))


def test_the_reason_names_the_calibration():
    """Day, size and number of duels; only where the floor is what set the margin."""
    decision = judged(duel(1.0), 0.05)
    assert decision.reason == (
        "detectable slow-down 5.0%; the margin is from the calibration of 2026-11-20: "
        "identical programs differed by up to 5.0% in 51 duels"
    )
    assert "calibration" not in judged(duel(1.0), 0.02).reason
    halves = duel(1.0, 1.2)
    noisy = replace(halves, baseline_ns=halves.now_ns)  # its own noise is more than the floor
    assert decide(noisy).margin > 0.05
    assert "calibration" not in judged(noisy, 0.05).reason
    one = name_margin(decide(duel(1.0), own_margin=0.05), floor(0.05, duels=1))
    assert one.reason.endswith("in 1 duel")


def test_a_floor_takes_back_a_small_slow_down():
    """+4 % in every pair: SLOWER without a calibration, within a floor of 5 % not."""
    assert decide(duel(1.04)).status is Status.SLOWER
    assert judged(duel(1.04), 0.05).status is Status.SAME
    assert judged(duel(0.96), 0.05).status is Status.SAME


@pytest.mark.parametrize("share", [0.101, 0.12, 0.5])
@pytest.mark.parametrize("ratio", [1.0, 1.05, 1.1])
def test_a_very_noisy_floor_is_never_green(share, ratio):
    """SAME needs power at 10 %: with a floor above it the best that a case can be is UNDECIDED."""
    decision = judged(duel(ratio), share)
    assert decision.status is Status.UNDECIDED
    assert "no number of pairs would do" in decision.reason
    assert "the margin is from the calibration" in decision.reason


def test_a_noisy_floor_still_lets_a_large_slow_down_through():
    """The margin is capped at 15 %, whatever the floor: +30 % is SLOWER, and the cap is the margin that is printed."""
    decision = judged(duel(1.3), 0.5)
    assert (decision.status, decision.margin) == (Status.SLOWER, MAX_MARGIN)
    assert "more than 15.0% slower" in decision.reason
    assert "the margin is from the calibration" in decision.reason


def test_a_duel_goes_on_by_the_margin_of_the_calibration():
    """At 20 pairs of +4 % it is settled either way, with 12 % it is not: SAME could not be said."""
    found = duel(1.04, pairs=20)
    assert is_settled(found)
    assert not is_settled(found, own_margin=own_margin(floor(0.12)))


FLOORS = NoiseFloors(schema=FLOORS_SCHEMA, hardware=HARDWARE, environment=ENVIRONMENT, cases={"scan/rnn": floor(0.05)})


@pytest.mark.parametrize(
    ("hardware", "environment", "words"),
    [
        (HARDWARE, dict(ENVIRONMENT), ""),
        (HARDWARE, {**ENVIRONMENT, "jax": "0.12.0"}, "another environment (jax 0.10.2 → 0.12.0)"),
        (HARDWARE, {**ENVIRONMENT, "XLA_FLAGS": "--x"}, "another environment (XLA_FLAGS absent → --x)"),
        (HARDWARE, {"jax": "0.10.2", "jaxlib": "0.10.2"}, "another environment (python 3.11 → absent)"),
        (HARDWARE, dict.fromkeys("abcdef", "9"), "and 6 more)"),
        *[(other, ENVIRONMENT, f"expected hardware `{other.slug}`, found `cpu-amd-epyc-1`")
          for other in (OTHER_CPU, replace(HARDWARE, devices=2), replace(HARDWARE, platform="gpu"))],
    ],
)  # fmt: skip
def test_it_holds_where_it_was_made(hardware, environment, words):
    """Same hardware, same environment; a file moved from another machine holds for nothing here."""
    found = why_not_applied(FLOORS, hardware, environment)
    assert words in found if words else found == ""


@pytest.mark.parametrize("share", [float("nan"), float("inf"), -0.01])
def test_a_floor_that_no_duel_gives_is_refused(share):
    """NaN would make every comparison with a margin false."""
    with pytest.raises(ValueError, match="a noise floor needs a share of 0 or more"):
        floor(share)
    with pytest.raises(ValueError, match="1 duel or more"):
        floor(0.01, duels=0)
