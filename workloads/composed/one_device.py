"""The layers that a single device has: each against the step without it."""

from __future__ import annotations

from jaxgate.model import Case, Claim, Computation, at_most, cases, equal
from workloads.composed import step
from workloads.composed.building import ALWAYS, SIZES, compared
from workloads.composed.models import Size, plain_model
from workloads.composed.step import Composition

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

SAME_WORK = equal("matmul_flops", to="reference", why="it changes how the work is done, not how much")
SAME_STATE = equal("donated_bytes", to="reference", why="the state is donated either way")

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "vmap-vs-loop-over-examples": (
        at_most(0.5, "stablehlo_ops", why="one body for all examples of a micro-batch"),
        SAME_WORK,
        SAME_STATE,
    ),
    "scan-vs-loop-over-micro-batches": (
        at_most(0.7, "stablehlo_ops", why="one body for all micro-batches"),
        at_most(1.1, "temp_bytes", why="the sum is all that is kept of a micro-batch"),
        SAME_WORK,
        SAME_STATE,
    ),
    "accumulation-vs-whole-batch-at-once": (
        at_most(0.6, "temp_bytes", why="activations of one micro-batch at a time"),
        SAME_WORK,
        SAME_STATE,
    ),
    "remat-vs-stored-blocks": (
        at_most(0.7, "temp_bytes", why="inputs of the blocks are all that is kept for the way back"),
        at_most(4 / 3, "matmul_flops", why="no more than one forward pass on top of three"),
        SAME_STATE,
    ),
    "value-and-grad-vs-second-forward": (
        at_most(0.8, "matmul_flops", why="the loss comes from the forward pass of the gradients"),
        at_most(1.05, "temp_bytes", why="and costs no memory"),
        SAME_STATE,
    ),
    "donated-vs-copied-state": (
        # Not the peak: a compiler may use the copy's memory for temporaries before it fills it.
        at_most(0.7, "state_bytes", why="old and new state share their memory"),
        at_most(1.1, "stablehlo_ops", why="and nothing else changes"),
        SAME_WORK,
    ),
    "nnx-vs-plain-functions": (
        at_most(1.1, "stablehlo_ops", why="modules are gone once traced"),
        at_most(1.05, "peak_bytes", why="and hold nothing on the device"),
        SAME_WORK,
        SAME_STATE,
    ),
}


def without_one_layer(size: Size, layer: str) -> Computation:
    """The whole composition against one that lacks a layer."""
    return compared(size, LACKING[layer])


def claims(layer: str) -> tuple[Claim, ...]:
    """What the layer buys, and that it buys nothing else."""
    return (*ALWAYS, *CLAIMS[layer])


CASES: tuple[Case, ...] = cases(
    "composed",
    "train-step-{layer}",
    without_one_layer,
    tuple({"layer": layer} for layer in LACKING),
    claims,
    sizes=SIZES,
)
