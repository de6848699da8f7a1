"""The mesh around the step: eight devices that share a batch, against the naive ways to use them."""

from __future__ import annotations

from jaxgate import Computation, Family, claim
from workloads.composed import step
from workloads.composed.building import SIZES, compared
from workloads.composed.step import Composition
from workloads.parts import Extent

CASES = Family("composed")

DEVICES = 8


@CASES.workload("train-step-on-mesh-of-8-vs-one-device-s-work-on-each", sizes=SIZES, devices=DEVICES)
def eight_devices(size: Extent) -> Computation:
    """The batch divided over the devices, against each of them working through all of it."""
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
    """Gradients that meet after the last micro-batch, against gradients that meet after each."""
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
