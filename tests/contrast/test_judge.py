"""What is said of the sides of a contrast: they must do the same first, then claims about their times are decided."""

import math

import pytest
from support.factories import steady

from jaxgate import Amount
from jaxgate.judge.timing.duel import decide
from jaxgate.model.decision import Status
from workloads.contrast.contrast import Alone, Contrast, Difference, SpeedClaim, Traits
from workloads.contrast.judge import decide_speed, disagreements, disturbances, needs_another, table, unlike

ALIKE = Traits(matmul_flops=1000, products=frozenset({"float32"}))
COMPILED = SpeedClaim(side="compiled", other="eager", why="compiling pays")
STAGES = ("weights", "logits", "loss function", "loss", "weights after training")


def apart(stage, error, side="torch"):
    """A difference of one stage."""
    return Difference(side=side, stage=stage, place="x", error=error, ours=1.0, theirs=2.0)


def alone(*step_ns):
    """A process whose steps took so long."""
    return Alone(first_step_s=1.0, step_ns=step_ns, peak_bytes=1000, of_device=False)


def test_sides_that_agree_are_the_same():
    """Each stage within the tolerance, and all traits equal; counts of work may be 0.9 % apart."""
    assert not list(disagreements([apart(stage, 1e-4) for stage in STAGES], rtol=1e-3))
    assert not list(unlike({"jax": ALIKE, "torch": Traits(matmul_flops=1009, products=ALIKE.products)}))


@pytest.mark.parametrize("first", range(len(STAGES)))
def test_the_first_stage_that_differs_is_named_and_later_ones_follow_from_it(first):
    """One line, of the first stage beyond the tolerance."""
    (found,) = disagreements([apart(stage, float(at >= first)) for at, stage in enumerate(STAGES)], rtol=1e-3)
    assert found.startswith(f"results: {STAGES[first]} of torch at x: 1 against 2, 1 apart, allowed 0.001; ")


def test_each_side_is_named():
    found = disagreements([apart("loss", 1.0, "eager"), apart("loss", 1.0, "compiled")], rtol=1e-3)
    assert [line.split(" at ")[0] for line in found] == ["results: loss of eager", "results: loss of compiled"]


def test_a_nan_or_another_shape_is_never_within_a_tolerance():
    """An infinite distance is beyond the widest one."""
    (found,) = disagreements([apart("logits", math.inf)], rtol=0.999)
    assert "not a number, or of another shape" in found


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"matmul_flops": 1020}, "1,020 FLOP a step against 1,000"),
        ({"products": frozenset({"float32 by fewer bits"})}, "float32 by fewer bits against float32"),
        ({"fused_attention": ("flash",)}, "flash against written out; one side has a fused kernel"),
        ({"relayout_bytes": 64}, "each step copies 64 bytes of inputs"),
        (
            {"loading": ("1 launch of stack",)},
            "the collate function of torch uses JAX for each batch (1 launch of stack)",
        ),
    ],
)
def test_what_one_side_alone_does_is_named(changed, said):
    """Each trait that differs is one line with both sides of it."""
    (found,) = unlike({"jax": ALIKE, "torch": Traits(**{"matmul_flops": 1000, "products": ALIKE.products} | changed)})
    assert said in found


def test_the_input_pipeline_of_the_first_side_is_looked_at_too():
    """It has nobody to be compared with, and must not use JAX either."""
    loading = Traits(matmul_flops=1000, products=ALIKE.products, loading=("1 of its arrays is JAX's",))
    (found,) = unlike({"jax": loading, "torch": ALIKE})
    assert "the collate function of jax uses JAX" in found


@pytest.mark.parametrize(
    ("ratios", "beside", "status", "why"),
    [
        ((0.5,) * 3, 0.5, Status.SAME, "compiling pays"),
        ((1.0,) * 3, 1.05, Status.SAME, "compiling pays"),
        ((1.5,) * 3, 1.5, Status.REGRESSED, "1.50 ×, 1.50 ×, 1.50 × (compiling pays)"),
        ((1.5,) * 2, 1.5, Status.UNDECIDED, ""),
        ((1.5,) * 3, 0.8, Status.UNDECIDED, "slower beside the other, 0.80 × alone: the runtimes disturb each other"),
        ((1.0,), 1.5, Status.UNDECIDED, "quick enough beside the other, 1.50 × alone: the runtimes disturb each other"),
    ],
)
def test_a_claim_is_broken_by_three_duels_that_agree_and_not_alone(ratios, beside, status, why):
    """As quick or quicker is none; where processes of their own say otherwise, nothing is decided."""
    found, reason = decide_speed(COMPILED, [steady(ratio, 20) for ratio in ratios], alone=beside)
    assert found is status
    assert why in reason


def test_a_broken_claim_asks_for_three_duels_and_no_more_once_one_disagrees():
    slow, quick = steady(1.5, 20), steady(0.5, 20)
    assert [needs_another(COMPILED, duels) for duels in ([slow], [slow] * 2, [slow] * 3, [slow, quick])] == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_factor_moves_the_limit():
    twice = SpeedClaim(side="jax", other="torch", factor=2.0)
    assert decide_speed(twice, [steady(1.5, 20)], alone=1.5)[0] is Status.SAME
    assert str(twice) == "jax ≤ 2 × torch"


def test_what_speaks_against_quoting_the_figures():
    """Ratios that are not those of processes of their own; steps that vary, of which nothing more is said then."""
    doubled = {"torch": decide(steady(2.0, 20))}
    assert not list(disturbances({"jax": alone(100), "torch": alone(205)}, doubled))
    (note,) = disturbances({"jax": alone(100), "torch": alone(130)}, doubled)
    assert note.startswith("torch takes 2.00 × of jax in one process and 1.30 × in processes of their own")
    (note,) = disturbances({"jax": alone(100), "torch": alone(100, 150, 400, 100)}, doubled)
    assert note.startswith("the machine is busy, quote none of the times")
    assert note.endswith("(torch 40%)")


def test_the_table_has_a_row_for_each_side():
    """Against the first one, in one process and in processes of their own."""
    head, first, other = table(
        Amount(count=8, unit="images"), {"jax": alone(100), "torch": alone(300)}, {"torch": decide(steady(2.0, 20))}
    )
    assert head.split("  ")[-1] == "first step"
    assert first.split()[:2] == ["jax", "100"]
    assert "2.00 ×" in other
    assert "3.00 ×" in other


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"sides": {"a": None}}, "two sides"),
        ({"rtol": 1.0}, "0 < rtol < 1"),
        ({"claims": [SpeedClaim(side="c", other="a")]}, "claims about a, b, found c"),
    ],
)
def test_a_contrast_that_compares_nothing_is_refused(changed, found):
    """One side, a tolerance that allows anything, a claim about nobody."""
    given = {"sides": {"a": None, "b": None}, "amount": Amount(count=1, unit="images"), "rtol": 0.1}
    with pytest.raises(ValueError, match=found):
        Contrast(**given | changed)
