"""A contrast from its sides to its verdict: JAX against itself, with duels and processes that a test gives."""

from dataclasses import replace

import pytest
from support.contrasts import contrast, squared, training
from support.factories import steady

from jaxgate.engine.contrast import run_contrast
from jaxgate.engine.instruments import Instruments
from jaxgate.model.decision import Status
from jaxgate.model.duel import BrokenDuelError
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.workloads.contrast import SideLaunch


def instruments(*ratios):
    """Duels that come out so, one after the other; the last one again and again."""
    left = list(ratios)

    def run(side, other, *, settled, **_):
        found = steady(left.pop(0) if len(left) > 1 else left[0], 20)
        assert settled(found)
        return found

    return Instruments(run_reference_duel=run)


def launch(step_ns):
    """A process whose steps all took so long."""
    return SideLaunch(first_step_s=1.0, step_ns=(step_ns,), peak_bytes=1, of_device=False)


def run(asked, *, tools, alone=None, timed=True):
    """The verdict, and the sides that were launched."""
    alone = alone or {"one": 100, "other": 100}
    launched = []

    def start(name):
        launched.append(name)
        return launch(alone[name])

    verdict = run_contrast(
        "contrast/x", asked, instruments=tools, launch=start if timed else None, progress=lambda text: None
    )
    return verdict, launched


def test_the_same_step_twice_is_the_same():
    """Both sides are launched, the second is held against the first, and nothing speaks against the figures."""
    verdict, launched = run(contrast(), tools=instruments(1.0))
    assert verdict.status is Status.SAME
    assert launched == ["one", "other"]
    one, other = verdict.contrast.sides
    assert one.ratio is None
    assert other.ratio.ratio == pytest.approx(1.0)
    assert verdict.run_ns == one.run_ns > 0
    assert verdict.contrast.notes == ()


def test_a_slow_side_breaks_its_claim_after_three_duels():
    """Half as long again in each duel: red, with the ratios of the two that confirmed it."""
    verdict, _ = run(contrast(), tools=instruments(1.5), alone={"one": 100, "other": 150})
    assert verdict.status is Status.REGRESSED
    assert verdict.fails
    assert verdict.worst.confirmed == pytest.approx((1.5, 1.5))


def test_a_slow_duel_that_does_not_come_again_breaks_nothing():
    """The second duel finds no difference, and decides."""
    verdict, _ = run(contrast(), tools=instruments(1.5, 1.0))
    assert verdict.status is Status.SAME


def test_sides_that_do_something_else_are_not_timed():
    """Another loss: no process is started, and no side has a time."""
    other = contrast(lambda: training(loss=lambda logits, labels: 2 * squared(logits, labels)))
    verdict, launched = run(other, tools=instruments(1.0))
    assert verdict.status is Status.INVALID
    assert launched == []
    assert "loss function of other" in verdict.worst.detail
    assert all(side.run_ns is None for side in verdict.contrast.sides)


def test_without_a_clock_results_are_compared_alone():
    """The sides are compared, no process is started, and a note says so."""
    verdict, launched = run(contrast(), tools=instruments(1.0), timed=False)
    assert verdict.status is Status.SAME
    assert launched == []
    assert verdict.contrast.notes == ("nothing was timed (--benchmark-disable)",)


def test_a_duel_that_means_nothing_is_invalid():
    """What a duel refuses is no verdict on the sides."""

    def broken(*_, **__):
        raise BrokenDuelError("the clock stood still")

    with pytest.raises(InvalidCaseError, match="the clock stood still"):
        run(contrast(), tools=replace(instruments(1.0), run_reference_duel=broken))


def test_a_side_that_cannot_be_built_is_invalid_and_named():
    """The error stands beside the name of the side."""

    def broken():
        raise RuntimeError("no weights")

    with pytest.raises(InvalidCaseError, match=r"running other.*no weights"):
        run(contrast(broken), tools=instruments(1.0))
