"""The layers that a single device has: each against the step without it."""

from __future__ import annotations

from jaxgate import Claim, Computation, Family, claim
from workloads.composed import step
from workloads.composed.building import SIZES, compared
from workloads.composed.models import plain_model
from workloads.composed.step import Composition
from workloads.parts import Extent

CASES = Family("composed")

LACKING = {
    "vmap-vs-loop-over-examples": Composition(examples=step.example_loop),
    "scan-vs-loop-over-micro-batches": Composition(accumulate=step.micro_batch_loop),
    "accumulation-vs-whole-batch-at-once": Composition(accumulate=step.whole_batch),
    "remat-vs-stored-blocks": Composition(checkpoint=step.stored),
    "value-and-grad-vs-second-forward": Composition(gradients=step.second_forward),
    "donated-vs-copied-state": Composition(donated=False),
    "nnx-vs-plain-functions": Composition(model=plain_model),
}
"""By what they show: the compositions that lack one layer."""

SAME_WORK = claim("matmul_flops == reference", "it changes how the work is done, not how much")
SAME_STATE = claim("donated_bytes == reference", "the state is donated either way")

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "vmap-vs-loop-over-examples": (
        claim("stablehlo_ops <= 0.5 * reference", "one body for all examples of a micro-batch"),
        SAME_WORK,
        SAME_STATE,
    ),
    "scan-vs-loop-over-micro-batches": (
        claim("stablehlo_ops <= 0.7 * reference", "one body for all micro-batches"),
        claim("temp_bytes <= 1.1 * reference", "the sum is all that is kept of a micro-batch"),
        SAME_WORK,
        SAME_STATE,
    ),
    "accumulation-vs-whole-batch-at-once": (
        claim("temp_bytes <= 0.6 * reference", "activations of one micro-batch at a time"),
        SAME_WORK,
        SAME_STATE,
    ),
    "remat-vs-stored-blocks": (
        claim("temp_bytes <= 0.7 * reference", "inputs of the blocks are all that is kept for the way back"),
        claim(f"matmul_flops <= {4 / 3} * reference", "no more than one forward pass on top of three"),
        SAME_STATE,
    ),
    "value-and-grad-vs-second-forward": (
        claim("matmul_flops <= 0.8 * reference", "the loss comes from the forward pass of the gradients"),
        claim("temp_bytes <= 1.05 * reference", "and costs no memory"),
        SAME_STATE,
    ),
    "donated-vs-copied-state": (
        # Not the peak: a compiler may use the copy's memory for temporaries before it fills it.
        claim("state_bytes <= 0.7 * reference", "old and new state share their memory"),
        claim("stablehlo_ops <= 1.1 * reference", "and nothing else changes"),
        SAME_WORK,
    ),
    "nnx-vs-plain-functions": (
        claim("stablehlo_ops <= 1.1 * reference", "modules are gone once traced"),
        claim("peak_bytes <= 1.05 * reference", "and hold nothing on the device"),
        SAME_WORK,
        SAME_STATE,
    ),
}


@CASES.workload("train-step-{layer}", sweep=tuple({"layer": layer} for layer in LACKING), sizes=SIZES)
def without_one_layer(size: Extent, layer: str) -> Computation:
    """The whole composition against one that lacks a layer."""
    return compared(size, LACKING[layer], CLAIMS[layer])
