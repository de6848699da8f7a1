"""The verdict of a contrast: first whether the sides do the same, then whether what is claimed of their times holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxgate.judge.claims import decide_claim
from jaxgate.judge.order import conclude
from jaxgate.model.computation import Amount
from jaxgate.model.decision import Status
from jaxgate.model.duel import Duel
from jaxgate.model.machine import HardwareKey
from jaxgate.model.verdict import Finding, TimeVerdict, Verdict
from jaxgate.model.workloads.contrast import ContrastResult, ContrastSide, Difference, SideLaunch, SpeedClaim, Traits

FLOPS_TOLERANCE = 0.01
"""How far the counts of two frameworks may differ: each leaves out other small products."""
DISTURBED = 0.10
"""A ratio in one process that is further from that of two processes says more of the runtimes than of the steps."""
DUELS = 3
"""A claim is broken where so many duels agree."""

_HINTS = {
    "weights": "they start from other weights, or an array is laid out otherwise",
    "logits": "same weights, same batch: the models differ, or the inputs are laid out otherwise (NHWC, NCHW)",
    "loss function": "same logits, same labels: the losses differ (labels as indices or one-hot? mean or sum?)",
    "loss": "same logits, same loss function: gradients or optimisers differ, or the step computes something else",
    "weights after training": "the losses agree and the weights do not: the optimisers differ",
}


def disagreements(differences: Iterable[Difference], rtol: float) -> Iterator[Finding]:
    """The first stage of each side that is not what the first side has; later ones follow from it."""
    done: set[str] = set()
    for one in differences:
        if one.side in done or one.error <= rtol:
            continue
        done.add(one.side)
        apart = (
            "not a number, or of another shape"
            if math.isinf(one.error)
            else f"{one.error:.2g} apart, allowed {rtol:.2g}"
        )
        yield _finding(
            "comparing results",
            f"{one.stage} of {one.side} at {one.place}: {one.ours:.6g} against {one.theirs:.6g}, {apart}; {_HINTS[one.stage]}",
        )


def unlike(traits: Mapping[str, Traits]) -> Iterator[Finding]:
    """What a side does that the first one does not: such a contrast would measure that."""
    first_name, first = next(iter(traits.items()))
    for name, side in traits.items():
        if side.loading:
            yield _finding(
                "looking at the input pipeline",
                f"the collate function of {name} uses JAX for each batch ({'; '.join(side.loading)}); expected NumPy alone",
            )
        if name == first_name:
            continue
        both = f"{name} against {first_name}"
        if side.products != first.products:
            yield _finding(
                "comparing precision",
                f"products of {both}: {_words(side.products)} against {_words(first.products)}",
            )
        if bool(side.fused_attention) != bool(first.fused_attention):
            yield _finding(
                "comparing attention",
                f"{both}: {_words(side.fused_attention) or 'written out'} against "
                f"{_words(first.fused_attention) or 'written out'}; one side has a fused kernel",
            )
        if abs(side.matmul_flops - first.matmul_flops) > FLOPS_TOLERANCE * first.matmul_flops:
            yield _finding(
                "comparing work",
                f"products of {both}: {side.matmul_flops:,} FLOP a step against {first.matmul_flops:,}",
            )
        if side.relayout_bytes != first.relayout_bytes:
            yield _finding(
                "comparing layouts",
                f"{both}: each step copies {side.relayout_bytes:,} bytes of inputs into another order of axes (NHWC, NCHW), "
                f"against {first.relayout_bytes:,}; hand each framework its own layout",
            )


def decide_speed(claim: SpeedClaim, duels: Sequence[Duel], alone: float) -> Finding:
    """Judge a claim about time.

    Args:
        claim: The claim.
        duels: Its duels, the side first; one, or as many as were run to confirm it.
        alone: Ratio of the two in processes of their own.

    Raises:
        BrokenDuelError: If the times mean nothing.
    """
    decisions = [decide_claim(claim.claim, duel) for duel in duels]
    last = decisions[-1]
    broken = len(decisions) >= DUELS and all(one.status is Status.SLOWER for one in decisions)
    open_ = last.status in (Status.UNDECIDED, Status.SLOWER) and not broken
    detail = claim.why
    if broken and alone <= claim.factor:
        open_, detail = True, f"slower beside the other, {alone:.2f} × alone: the runtimes disturb each other"
    if not broken and not open_ and alone > claim.factor * (1 + DISTURBED):
        open_, detail = True, f"quick enough beside the other, {alone:.2f} × alone: the runtimes disturb each other"
    status = Status.UNDECIDED if open_ else Status.REGRESSED if broken else Status.SAME
    return Finding(
        kind="claim",
        name=f"run_ns of {claim}",
        status=status,
        now=last.now_ns,
        against=last.baseline_ns,
        allowed=claim.factor * last.baseline_ns,
        detail=detail,
        decision=last,
        confirmed=tuple(one.ratio for one in decisions[1:]),
    )


def needs_another(claim: SpeedClaim, duels: Sequence[Duel]) -> bool:
    """Whether a claim looks broken, and has not been looked at often enough."""
    return len(duels) < DUELS and decide_claim(claim.claim, duels[-1]).status is Status.SLOWER


def judge_contrast(
    case: str,
    hardware: HardwareKey,
    findings: Sequence[Finding],
    sides: Sequence[ContrastSide],
    differences: Sequence[Difference],
    *,
    amount: Amount,
    steps: int,
    notes: Sequence[str] = (),
) -> Verdict:
    """The verdict: INVALID where the sides do not do the same; the figures are shown for comparable sides alone.

    Args:
        case: ``family/sentence``.
        hardware: Where it ran.
        findings: What was checked.
        sides: Each side with what was measured of it, the first one first.
        differences: How far the sides are apart.
        amount: What a step gets done.
        steps: How many steps were compared.
        notes: What else to know before the figures are quoted.
    """
    told = [*notes, *_disturbances(sides)]
    result = ContrastResult(
        amount=amount, sides=tuple(sides), differences=tuple(differences), steps=steps, notes=tuple(told)
    )
    time = TimeVerdict(status=Status.SAME, reason="sides against each other; nothing is stored")
    verdict = Verdict(
        case=case,
        hardware=None if any(one.status is Status.INVALID for one in findings) else hardware,
        status=Status.SAME,
        fails=False,
        findings=(),
        time=time,
        run_ns=sides[0].run_ns,
        amount=amount,
        contrast=result,
    )
    return conclude(verdict, findings, strict=False)


def spread(launch: SideLaunch) -> float:
    """How far a middle half of its steps reaches, relative to their median."""
    ordered = sorted(launch.step_ns)
    quarter = len(ordered) // 4
    return (ordered[-1 - quarter] - ordered[quarter]) / launch.run_ns


def _disturbances(sides: Sequence[ContrastSide]) -> Iterator[str]:
    """What speaks against quoting the figures: a busy machine, or else runtimes that disturb each other."""
    restless = [
        f"{side.name} {spread(side.launch):.0%}"
        for side in sides
        if side.launch is not None and spread(side.launch) > DISTURBED
    ]
    if restless:
        yield (
            f"the machine is busy, quote none of the times: half of the steps in a process of their own vary by more than "
            f"{DISTURBED:.0%} ({', '.join(restless)})"
        )
        return
    first = sides[0].launch
    for side in sides:
        if side.ratio is None or side.launch is None or first is None:
            continue
        alone = side.launch.ratio(first)
        if abs(math.log(side.ratio.ratio / alone)) <= math.log(1 + DISTURBED):
            continue
        yield (
            f"{side.name} takes {side.ratio.ratio:.2f} × of {sides[0].name} in one process and {alone:.2f} × in processes of "
            "their own: the runtimes disturb each other, quote the latter"
        )


def _finding(name: str, detail: str) -> Finding:
    return Finding(kind="case", name=name, status=Status.INVALID, detail=detail)


def _words(found: Iterable[str]) -> str:
    return ", ".join(sorted(found))
