"""The cases: the whole composition against one that lacks a layer, on a mesh and on one device."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Claim, Computation, Family, claim
from workloads.composed import step
from workloads.composed.step import Composition, make_params, plain_model
from workloads.parts import Extent, Tree, drawing, grid, over_samples, sizes

CASES = Family("composed")

SIZES = sizes(layers=(4, 8), time=(32, 512), width=(32, 1024), hidden=(64, 2048), batch=(32, 64), micro_batches=4)

ALWAYS: tuple[Claim, ...] = (
    claim("donated_bytes >= 1", "parameters and optimiser state are donated"),
    claim("host_callbacks == 0", "the loss is returned, not read inside the step"),
)
"""What holds for the composition, whatever the reference lacks."""


def across(mesh: Any, tree: Tree, *, sharded: bool) -> Tree:
    """How each leaf lies on the mesh: its last axis divided, or all of it on each device."""

    def place(leaf: Any) -> NamedSharding:
        spec = P(*(None,) * (leaf.ndim - 1), "data") if sharded and leaf.ndim else P()
        return NamedSharding(mesh, spec)

    return jax.tree.map(place, tree)


def compared(
    size: Extent,
    lacking: Composition,
    claims: Sequence[Claim],
    *,
    devices: int = 1,
    shard: bool = False,
    reference_sharded: bool | None = None,
) -> Computation:
    """The whole against one that lacks a layer; ``shard`` divides the optimiser's state over the devices."""
    mesh = grid(data=devices)
    # The epsilon keeps the update of an element whose gradient is nearly nothing from turning rounding into a sign.
    optimiser = optax.adamw(1e-3, eps=1e-4)
    params = make_params(size)
    opt_state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(optimiser.init, params))

    def shardings(*, sharded: bool) -> Tree:
        return across(mesh, params, sharded=False), across(mesh, opt_state, sharded=sharded)

    draw = drawing(1)
    x, y = (draw((size.batch, size.time, size.width)) for _ in range(2))
    placed = shardings(sharded=shard)
    args = *jax.device_put((params, opt_state), placed), *jax.device_put((x, y), NamedSharding(mesh, P("data")))
    return Computation(
        subject=Composition().step(size, mesh, optimiser, placed),
        reference=lacking.step(
            size, mesh, optimiser, shardings(sharded=shard if reference_sharded is None else reference_sharded)
        ),
        args=args,
        grow=over_samples(args, 2, 3, quarters=(4, 8, 16)),
        carry=(0, 1),
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        rtol=1e-3,
        atol=1e-5,
        claims=[*ALWAYS, *claims],
    )


# The mesh around the step: eight devices that share a batch, against the naive ways to use them.

DEVICES = 8


@CASES.workload("train-step-on-mesh-of-8-vs-one-device-s-work-on-each", sizes=SIZES, devices=DEVICES)
def eight_devices(size: Extent) -> Computation:
    return compared(
        size,
        Composition(spread=step.on_every_device),
        devices=DEVICES,
        claims=[
            claim("temp_bytes <= 0.5 * reference", "each device holds the activations of its own samples"),
            claim("xla_flops <= 0.3 * reference", "and works on those only"),
            # Parameters and AdamW's two moments of them are what is donated.
            claim("collective_bytes <= 0.35 * donated_bytes", "one set of gradients crosses, once in a step"),
            claim("matmul_flops == reference", "all devices together do what one would"),
        ],
    )


@CASES.workload("train-step-on-mesh-of-8-summed-once-vs-each-micro-batch", sizes=SIZES, devices=DEVICES)
def summed_once(size: Extent) -> Computation:
    return compared(
        size,
        Composition(spread=step.summed_each_time),
        devices=DEVICES,
        claims=[
            claim("collective_bytes <= 0.3 * reference", "one sum in place of four or more"),
            claim("matmul_flops == reference", "the same work on each device"),
            claim("donated_bytes == reference", "the state is donated either way"),
        ],
    )


@CASES.workload("train-step-on-mesh-of-8-sharded-vs-replicated-optimiser-state", sizes=SIZES, devices=DEVICES)
def sharded_state(size: Extent) -> Computation:
    """The optimiser's state divided over the devices, against one that each step leaves whole on each of them."""
    return compared(
        size,
        Composition(),
        devices=DEVICES,
        shard=True,
        reference_sharded=False,
        claims=[
            claim("output_bytes <= 0.5 * reference", "two of three parts of the state are divided by eight"),
            claim("aliased_bytes >= donated_bytes", "they come back as they went in, so that each buffer is reused"),
            claim("matmul_flops == reference", "only where the state lies is different"),
        ],
    )


# The layers that a single device has: each against the step without it.

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
    return compared(size, LACKING[layer], CLAIMS[layer])
