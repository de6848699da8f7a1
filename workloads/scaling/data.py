"""Data parallel: parameters on every device, the batch spread over them, gradients summed once a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate.model import Alternative, Amount, Batch, Case, Claim, Computation, at_most, equal
from workloads.parts import grid
from workloads.pjit.meshes import gathered, shapes, shardings, trained
from workloads.scaling.network import ATOL, RTOL, Size, make_numbers, next_step, on_devices, train_step

STRONG = {
    "small": Size(samples=256, width=32, hidden=128, pairs=2),
    "full": Size(samples=16384, width=2048, hidden=8192, pairs=4),
}
WEAK = {
    "small": Size(samples=64, width=32, hidden=128, pairs=2),
    "full": Size(samples=3072, width=2048, hidden=8192, pairs=4),
}

STATE, SAMPLES = P(), P("data")


def compiled(mesh: Mesh) -> Callable[..., Any]:
    """The step; the new state is on every device, as the old one was."""
    jitted: Callable[..., Any] = jax.jit(train_step(), donate_argnums=0, out_shardings=shardings(mesh, (STATE, P())))
    return jitted


def data_parallel(size: Size, devices: int, samples: int, series: str) -> Computation:
    """A batch of ``samples`` spread over the devices, against all of it on each of them."""
    mesh = grid(data=devices)
    numbers = make_numbers(size, samples)
    spread = jax.device_put(numbers[1:], shardings(mesh, SAMPLES))
    return Computation(
        subject=compiled(mesh),
        reference=gathered(train_step(), mesh),
        args=(jax.device_put(numbers[0], shardings(mesh, STATE)), *spread),
        next_args=next_step,
        batch=Batch(argument=1, size=samples),
        amount=Amount(count=samples, unit="samples", series=series),
        analytic_flops=size.step_flops(samples),
        rtol=RTOL,
        atol=ATOL,
    )


def strong(size: Size, devices: int) -> Computation:
    """The same batch on any number of devices."""
    return data_parallel(size, devices, size.samples, "data-parallel, strong")


def weak(size: Size, devices: int) -> Computation:
    """The same share for each device; the alternative is one device with its share."""
    alone = grid(data=1)
    numbers = make_numbers(size, size.samples)
    share = shapes(numbers[1:], shardings(alone, (SAMPLES, SAMPLES)))
    state = jax.tree.map(lambda leaf: shapes(leaf, shardings(alone, STATE)), numbers[0])
    return replace(
        data_parallel(size, devices, devices * size.samples, "data-parallel, weak"),
        alternatives={"one-device": Alternative(function=compiled(alone), args=(state, *share))},
    )


def exchanged(devices: int) -> tuple[Claim, ...]:
    """What a data-parallel step may send, on any number of devices."""
    if devices == 1:
        return (equal("collectives", to=0, why="one device has nobody to talk to"),)
    return (
        # Half of the state is parameters; the loss is a few bytes more.
        at_most(0.51, "collective_bytes", of="donated_bytes", why="gradients are sent once, however many devices"),
    )


def strong_claims(devices: int) -> tuple[Claim, ...]:
    """What more devices must give to the same batch, on any hardware."""
    return (
        *trained(),
        *exchanged(devices),
        at_most(1.2 / devices, "xla_flops", why="a device works on its share, and nothing is done twice"),
        at_most(1 / devices + 0.3, "temp_bytes", why="activations of its share; the gradients are those of all"),
    )


def weak_claims(devices: int) -> tuple[Claim, ...]:
    """What more devices may cost each of them where its share stays, on any hardware."""
    return (
        *trained(),
        *exchanged(devices),
        at_most(1.1, "xla_flops", of="alternatives", why="the work of a device does not grow with their number"),
        at_most(1.35, "peak_bytes", of="alternatives", why="nor does its memory, but for gradients on their way"),
    )


COUNTS = (1, 2, 4, 8)

CASES: tuple[Case, ...] = (
    *on_devices("data-parallel-step-strong-on-{devices}-vs-gathered", strong, COUNTS, strong_claims, STRONG),
    *on_devices("data-parallel-step-weak-on-{devices}-vs-gathered", weak, COUNTS, weak_claims, WEAK),
)
