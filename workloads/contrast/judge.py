"""Whether the sides of a contrast do the same, whether what is claimed of their times holds, and a table of them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxgate import Amount
from jaxgate.judge.claims import decide_claim
from jaxgate.model.claim import RUN_NS, Claim
from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import Duel
from jaxgate.report.printable import aligned
from jaxgate.report.units import show, show_rate
from workloads.contrast.contrast import Alone, Difference, SpeedClaim, Traits

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


def disagreements(differences: Iterable[Difference], rtol: float) -> Iterator[str]:
    """The first stage of each side that is not what the first side has; later ones follow from it."""
    done: set[str] = set()
    for one in differences:
        if one.side in done or one.error <= rtol:
            continue
        done.add(one.side)
        apart = f"{one.error:.2g} apart, allowed {rtol:.2g}"
        if math.isinf(one.error):
            apart = "not a number, or of another shape"
        yield f"results: {one.stage} of {one.side} at {one.place}: {one.ours:.6g} against {one.theirs:.6g}, {apart}; {_HINTS[one.stage]}"


def unlike(traits: Mapping[str, Traits]) -> Iterator[str]:
    """What a side does that the first one does not: such a contrast would measure that."""
    first_name, first = next(iter(traits.items()))
    for name, side in traits.items():
        if side.loading:
            yield f"input pipeline: the collate function of {name} uses JAX for each batch ({'; '.join(side.loading)}); expected NumPy alone"
        both = f"{name} against {first_name}"
        if side.products != first.products:
            yield f"precision: products of {both}: {_words(side.products)} against {_words(first.products)}"
        if bool(side.fused_attention) != bool(first.fused_attention):
            kernels = [_words(one.fused_attention) or "written out" for one in (side, first)]
            yield f"attention: {both}: {kernels[0]} against {kernels[1]}; one side has a fused kernel"
        if abs(side.matmul_flops - first.matmul_flops) > FLOPS_TOLERANCE * first.matmul_flops:
            yield f"work: products of {both}: {side.matmul_flops:,} FLOP a step against {first.matmul_flops:,}"
        if side.relayout_bytes != first.relayout_bytes:
            yield (
                f"layouts: {both}: each step copies {side.relayout_bytes:,} bytes of inputs into another order of axes "
                f"(NHWC, NCHW), against {first.relayout_bytes:,}; hand each framework its own layout"
            )


def claim_of(speed: SpeedClaim) -> Claim:
    """The same as a gate claims it of a subject and its reference."""
    return Claim(quantity=RUN_NS, relation="<=", factor=speed.factor, why=speed.why)


def needs_another(speed: SpeedClaim, duels: Sequence[Duel]) -> bool:
    """Whether a claim looks broken, and has not been looked at often enough."""
    return len(duels) < DUELS and decide_claim(claim_of(speed), duels[-1]).status is Status.SLOWER


def decide_speed(speed: SpeedClaim, duels: Sequence[Duel], alone: float) -> tuple[Status, str]:
    """Judge a claim about time: SAME, REGRESSED or UNDECIDED, and the reason.

    Args:
        speed: The claim.
        duels: Its duels, the side first; one, or as many as were run to confirm it.
        alone: Ratio of the two in processes of their own.

    Raises:
        BrokenDuelError: If the times mean nothing.
    """
    decisions = [decide_claim(claim_of(speed), duel) for duel in duels]
    last = decisions[-1].status
    broken = len(decisions) >= DUELS and all(one.status is Status.SLOWER for one in decisions)
    if broken and alone <= speed.factor:
        return Status.UNDECIDED, f"slower beside the other, {alone:.2f} × alone: the runtimes disturb each other"
    if broken:
        return Status.REGRESSED, ", ".join(f"{one.ratio:.2f} ×" for one in decisions) + f" ({speed.why})"
    if last in (Status.UNDECIDED, Status.SLOWER):
        return Status.UNDECIDED, decisions[-1].reason
    if alone > speed.factor * (1 + DISTURBED):
        return Status.UNDECIDED, f"quick enough beside the other, {alone:.2f} × alone: the runtimes disturb each other"
    return Status.SAME, speed.why


def disturbances(alone: Mapping[str, Alone], ratios: Mapping[str, Decision]) -> Iterator[str]:
    """What speaks against quoting the figures: a busy machine, or else runtimes that disturb each other."""
    restless = [f"{name} {side.spread:.0%}" for name, side in alone.items() if side.spread > DISTURBED]
    if restless:
        yield (
            "the machine is busy, quote none of the times: half of the steps in a process of their own vary by more than "
            f"{DISTURBED:.0%} ({', '.join(restless)})"
        )
        return
    first = next(iter(alone))
    for name, decision in ratios.items():
        apart = alone[name].ratio(alone[first])
        if abs(math.log(decision.ratio / apart)) > math.log(1 + DISTURBED):
            yield (
                f"{name} takes {decision.ratio:.2f} × of {first} in one process and {apart:.2f} × in processes of their own: "
                "the runtimes disturb each other, quote the latter"
            )


def table(amount: Amount, alone: Mapping[str, Alone], ratios: Mapping[str, Decision]) -> list[str]:
    """Each side with its time, rate, memory and first step, against the first side; one line each."""
    first = next(iter(alone))
    rows = [("", "a step", "rate", "in one process", "alone", "memory", "first step")]
    for name, side in alone.items():
        together, apart = "1 ×", "1 ×"
        if name != first:
            decision = ratios[name]
            together = f"{decision.ratio:.2f} × [{decision.low:.2f}, {decision.high:.2f}]"
            apart = f"{side.ratio(alone[first]):.2f} ×"
        time, rate = show("run_ns", side.run_ns), show_rate(amount, side.run_ns)
        memory, begun = show("peak_bytes", side.peak_bytes), show("first_step_ns", side.first_step_s * 1e9)
        rows.append((f"  {name}", time, rate, together, apart, memory, begun))
    return aligned(rows, right=range(1, 7))


def _words(found: Iterable[str]) -> str:
    return ", ".join(sorted(found))
