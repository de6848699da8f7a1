"""The verdict of a contrast: the sides must do the same first, then claims about their times are decided."""

import math

import pytest
from support.factories import CALL_NS, steady

from jaxgate.judge.claims import are_settled
from jaxgate.judge.contrast import decide_speed, disagreements, judge_contrast, needs_another, unlike
from jaxgate.judge.timing.duel import decide
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.workloads.contrast import Contrast, ContrastSide, Difference, SideLaunch, SpeedClaim, Traits

CPU = HardwareKey(platform="cpu", device_kind="Some CPU", devices=1)
ALIKE = Traits(matmul_flops=1000, products=frozenset({"float32"}))
COMPILED = SpeedClaim(side="compiled", other="eager", why="compiling pays")
STAGES = ("weights", "logits", "loss function", "loss", "weights after training")


def apart(stage, error, side="torch", place="x"):
    """A difference of one stage."""
    return Difference(side=side, stage=stage, place=place, error=error, ours=1.0, theirs=2.0)


def launch(step_ns, peak=1000):
    """A process whose steps all took so long."""
    return SideLaunch(first_step_s=1.0, step_ns=(step_ns,) * 3, peak_bytes=peak, of_device=False)


def verdict(findings=(), sides=None):
    """The verdict on these findings."""
    sides = sides or [ContrastSide(name="jax", traits=ALIKE), ContrastSide(name="torch", traits=ALIKE)]
    return judge_contrast("contrast/x", CPU, findings, sides, [], amount=Amount(count=8, unit="images"), steps=5)


def test_sides_that_agree_are_the_same():
    """Each stage within the tolerance, and all traits equal."""
    assert not list(disagreements([apart(stage, 1e-4) for stage in STAGES], rtol=1e-3))
    assert not list(unlike({"jax": ALIKE, "torch": ALIKE}))
    assert verdict().status is Status.SAME
    assert not verdict().fails


@pytest.mark.parametrize("first", range(len(STAGES)))
def test_the_first_stage_that_differs_is_named_and_later_ones_follow_from_it(first):
    """One finding, of the first stage beyond the tolerance."""
    found = list(disagreements([apart(stage, float(at >= first)) for at, stage in enumerate(STAGES)], rtol=1e-3))
    assert len(found) == 1
    assert found[0].detail.startswith(f"{STAGES[first]} of torch at x: 1 against 2, 1 apart, allowed 0.001; ")
    assert verdict(found).status is Status.INVALID
    assert verdict(found).fails


def test_each_side_is_named():
    """Two sides that differ are two findings."""
    found = list(disagreements([apart("loss", 1.0, "eager"), apart("loss", 1.0, "compiled")], rtol=1e-3))
    assert [finding.detail.split(" at ")[0] for finding in found] == ["loss of eager", "loss of compiled"]


def test_a_nan_or_another_shape_is_never_within_a_tolerance():
    """An infinite distance is beyond the widest one."""
    (found,) = disagreements([apart("logits", math.inf)], rtol=0.999)
    assert "not a number, or of another shape" in found.detail


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (Traits(matmul_flops=1020, products=ALIKE.products), "1,020 FLOP a step against 1,000"),
        (Traits(matmul_flops=1000, products=frozenset({"float32 by fewer bits"})), "float32 by fewer bits against float32"),
        (
            Traits(matmul_flops=1000, products=ALIKE.products, fused_attention=("flash",)),
            "flash against written out; one side has a fused kernel",
        ),
        (Traits(matmul_flops=1000, products=ALIKE.products, relayout_bytes=64), "each step copies 64 bytes of inputs"),
        (Traits(matmul_flops=1000, products=ALIKE.products, loading=("1 launch of stack",)), "uses JAX for each batch (1 launch of stack)"),
    ],
)  # fmt: skip
def test_what_one_side_alone_does_is_named(changed, said):
    """Each trait that differs is one finding with both sides of it."""
    (found,) = unlike({"jax": ALIKE, "torch": changed})
    assert said in found.detail
    assert verdict([found]).fails


def test_the_input_pipeline_of_the_first_side_is_looked_at_too():
    """It has nobody to be compared with, and must not use JAX either."""
    loading = Traits(matmul_flops=1000, products=ALIKE.products, loading=("1 of its arrays is JAX's",))
    (found,) = unlike({"jax": loading, "torch": ALIKE})
    assert "the collate function of jax uses JAX" in found.detail


def test_counts_of_work_may_differ_by_a_hundredth():
    """0.9 % more FLOPs are still the same work."""
    assert not list(unlike({"jax": ALIKE, "torch": Traits(matmul_flops=1009, products=ALIKE.products)}))


@pytest.mark.parametrize(("ratio", "status"), [(0.5, Status.SAME), (1.0, Status.SAME), (1.5, Status.REGRESSED)])
def test_a_claim_is_broken_by_three_duels_that_agree(ratio, status):
    """Slower in all of them is red; as quick or quicker is not."""
    found = decide_speed(COMPILED, [steady(ratio, 20)] * 3, alone=ratio)
    assert found.status is status
    assert verdict([found]).fails is (status is Status.REGRESSED)


def test_one_duel_breaks_no_claim_and_asks_for_another():
    """Up to three, and no more once one disagrees."""
    slow, quick = steady(1.5, 20), steady(0.5, 20)
    assert needs_another(COMPILED, [slow])
    assert needs_another(COMPILED, [slow, slow])
    assert not needs_another(COMPILED, [slow, slow, slow])
    assert not needs_another(COMPILED, [slow, quick])
    assert decide_speed(COMPILED, [slow, slow], alone=1.5).status is Status.UNDECIDED


def test_a_side_that_is_slower_beside_the_other_alone_breaks_no_claim():
    """Quicker in a process of its own: undecided, with both words."""
    found = decide_speed(COMPILED, [steady(1.5, 20)] * 3, alone=0.8)
    assert found.status is Status.UNDECIDED
    assert "the runtimes disturb each other" in found.detail


def test_a_side_that_is_quick_beside_the_other_alone_holds_no_claim():
    """As quick in one process, half as long again in processes of their own: undecided, too."""
    found = decide_speed(COMPILED, [steady(1.0, 20)], alone=1.5)
    assert found.status is Status.UNDECIDED
    assert "1.50 × alone" in found.detail
    assert decide_speed(COMPILED, [steady(1.0, 20)], alone=1.05).status is Status.SAME


def test_a_factor_moves_the_limit_and_the_ratio_stays_what_was_measured():
    """1.5 times as long, where twice is allowed."""
    twice = SpeedClaim(side="jax", other="torch", factor=2.0)
    found = decide_speed(twice, [steady(1.5, 20)], alone=1.5)
    assert found.status is Status.SAME
    assert found.decision.ratio == pytest.approx(1.5)
    assert found.allowed == pytest.approx(2 * CALL_NS)
    assert found.name == "run_ns of jax ≤ 2 × torch"


def test_a_duel_without_a_claim_stops_at_its_first_look():
    """20 pairs are enough for the eye; a claim may need more."""
    assert are_settled([], steady(1.0, 20))
    assert not are_settled([], steady(1.0, 10))
    assert are_settled([COMPILED.claim], steady(1.5, 20))


def test_ratios_that_are_not_those_of_processes_of_their_own_are_said():
    """2.00 against 1.30 is a note; 2.00 against 2.05 is none."""
    sides = [
        ContrastSide(name="jax", traits=ALIKE, run_ns=1.0, launch=launch(100)),
        ContrastSide(name="torch", traits=ALIKE, run_ns=2.0, ratio=decide(steady(2.0, 20)), launch=launch(130)),
    ]
    (note,) = verdict(sides=sides).contrast.notes
    assert "torch takes 2.00 × of jax in one process and 1.30 × in processes of their own" in note
    alike = [sides[0], ContrastSide(name="torch", traits=ALIKE, ratio=decide(steady(2.0, 20)), launch=launch(205))]
    assert verdict(sides=alike).contrast.notes == ()


def test_steps_that_vary_say_that_the_machine_is_busy_and_nothing_of_the_runtimes():
    """Of 100, 100, 150 and 400 the middle half reaches over 50 of a median of 125."""
    restless = SideLaunch(first_step_s=1.0, step_ns=(100, 150, 400, 100), peak_bytes=1, of_device=False)
    sides = [
        ContrastSide(name="jax", traits=ALIKE, launch=launch(100)),
        ContrastSide(name="torch", traits=ALIKE, ratio=decide(steady(2.0, 20)), launch=restless),
    ]
    (note,) = verdict(sides=sides).contrast.notes
    assert note.startswith("the machine is busy, quote none of the times")
    assert note.endswith("(torch 40%)")


def test_a_ratio_of_processes_is_that_of_medians():
    """Of sides in processes of their own."""
    assert launch(300).ratio(launch(100)) == 3.0


def test_a_contrast_that_compares_nothing_is_refused():
    """One side, a tolerance that allows anything, a claim about nobody."""
    amount = Amount(count=1, unit="images")
    with pytest.raises(ValueError, match="two sides"):
        Contrast(sides={"jax": lambda: None}, amount=amount, rtol=1e-3)
    with pytest.raises(ValueError, match="0 < rtol < 1"):
        Contrast(sides={"a": lambda: None, "b": lambda: None}, amount=amount, rtol=1.0)
    with pytest.raises(ValueError, match="claims about a, b, found c"):
        Contrast(
            sides={"a": lambda: None, "b": lambda: None},
            amount=amount,
            rtol=0.1,
            claims=[SpeedClaim(side="c", other="a")],
        )
