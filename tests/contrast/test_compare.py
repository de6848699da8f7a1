"""A contrast from its sides to its table: JAX against itself, with duels and processes that a test gives."""

import pytest
from support.contrasts import contrast, squared, training
from support.factories import steady

from jaxgate.model.duel import BrokenDuelError
from workloads.contrast.compare import compare
from workloads.contrast.contrast import Alone

LOSS = contrast(lambda: training(loss=lambda logits, labels: 2 * squared(logits, labels)))


def run(asked, *ratios, **alone):
    """What it shows, and the sides that were launched; duels come out so, the last one again and again."""
    left, launched = list(ratios), []

    def duel(*_, settled, **__):
        found = steady(left.pop(0) if len(left) > 1 else left[0], 20)
        assert settled(found)
        return found

    def start(name):
        launched.append(name)
        return Alone(first_step_s=1.0, step_ns=(alone.get(name, 100),), peak_bytes=1, of_device=False)

    return compare(asked, alone=start, duel=duel), launched


def test_the_same_step_twice_is_the_same():
    """Both sides are launched, the second is held against the first, and nothing speaks against the figures."""
    found, launched = run(contrast(), 1.0)
    assert (found.problems, launched) == ([], ["one", "other"])
    assert (found.figures["one"]["ratio"], found.figures["other"]["ratio"]) == (None, pytest.approx(1.0))
    assert found.lines[0].endswith("results of 5 steps at most 0 apart")
    assert len(found.lines) == 4


@pytest.mark.parametrize(
    ("ratios", "problems"),
    [((1.5,), ["claim: other ≤ 1 × one is broken: 1.50 ×, 1.50 ×, 1.50 × ()"]), ((1.5, 1.0), [])],
    ids=["each time", "once"],
)
def test_a_slow_side_breaks_its_claim_after_three_duels(ratios, problems):
    """Half as long again in each; a slow duel that does not come again breaks nothing."""
    assert run(contrast(), *ratios, other=150)[0].problems == problems


def test_sides_that_do_something_else_are_not_timed():
    """Another loss: no process is started, and no side has a time."""
    found, launched = run(LOSS, 1.0)
    assert (launched, found.figures, found.lines) == ([], {}, [])
    assert found.problems[0].startswith("results: loss function of other")


def test_without_a_clock_results_are_compared_alone():
    """The sides are compared, no process is started, and a note says so."""
    found = compare(contrast(), alone=None)
    assert (found.problems, found.lines[1:]) == ([], ["  nothing was timed (--benchmark-disable)"])
    assert compare(LOSS, alone=None).problems


def test_a_duel_that_means_nothing_is_an_error():
    """What a duel refuses says nothing of the sides."""

    def broken(*_, **__):
        raise BrokenDuelError("the clock stood still")

    with pytest.raises(BrokenDuelError, match="the clock stood still"):
        compare(contrast(), alone=lambda _: None, duel=broken)
