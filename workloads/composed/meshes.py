"""The mesh around the step: eight devices that share a batch, against the naive ways to use them."""

from __future__ import annotations

from jaxgate.model import Case, Claim, Computation, at_least, at_most, cases, equal
from workloads.composed import step
from workloads.composed.building import ALWAYS, SIZES, compared
from workloads.composed.models import Size
from workloads.composed.step import Composition

DEVICES = 8


def eight_devices(size: Size) -> Computation:
    """The batch divided over the devices, against each of them working through all of it."""
    return compared(size, Composition(spread=step.on_every_device), devices=DEVICES)


def eight_devices_claims() -> tuple[Claim, ...]:
    """The work is divided; gradients cross once."""
    return (
        *ALWAYS,
        at_most(0.5, "temp_bytes", why="each device holds the activations of its own samples"),
        at_most(0.3, "xla_flops", why="and works on those only"),
        # Parameters and AdamW's two moments of them are what is donated.
        at_most(0.35, "collective_bytes", of="donated_bytes", why="one set of gradients crosses, once in a step"),
        equal("matmul_flops", to="reference", why="all devices together do what one would"),
    )


def summed_once(size: Size) -> Computation:
    """Gradients that meet after the last micro-batch, against gradients that meet after each."""
    return compared(size, Composition(spread=step.summed_each_time), devices=DEVICES)


def summed_once_claims() -> tuple[Claim, ...]:
    """Communication does not grow with the number of micro-batches."""
    return (
        *ALWAYS,
        at_most(0.3, "collective_bytes", why="one sum in place of four or more"),
        equal("matmul_flops", to="reference", why="the same work on each device"),
        equal("donated_bytes", to="reference", why="the state is donated either way"),
    )


def sharded_state(size: Size) -> Computation:
    """The optimiser's state divided over the devices, against one that each step leaves whole on each of them."""
    return compared(size, Composition(), devices=DEVICES, shard=True, reference_sharded=False)


def sharded_state_claims() -> tuple[Claim, ...]:
    """Each device keeps all parameters and an eighth of the rest."""
    return (
        *ALWAYS,
        at_most(0.5, "output_bytes", why="two of three parts of the state are divided by eight"),
        at_least(
            1, "aliased_bytes", of="donated_bytes", why="they come back as they went in, so that each buffer is reused"
        ),
        equal("matmul_flops", to="reference", why="only where the state lies is different"),
    )


CASES: tuple[Case, ...] = (
    *cases(
        "composed",
        "train-step-on-mesh-of-8-vs-one-device-s-work-on-each",
        eight_devices,
        ({},),
        eight_devices_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
    *cases(
        "composed",
        "train-step-on-mesh-of-8-summed-once-vs-each-micro-batch",
        summed_once,
        ({},),
        summed_once_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
    *cases(
        "composed",
        "train-step-on-mesh-of-8-sharded-vs-replicated-optimiser-state",
        sharded_state,
        ({},),
        sharded_state_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
)
