"""Data parallel: parameters on every device, the batch spread over them, gradients summed once a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, grid, sizes
from workloads.pjit.meshes import TRAINED, gathered, shapes, shardings
from workloads.scaling.network import RTOL, make_numbers, on_devices, train_step

CASES = Family("scaling")

STRONG = sizes(samples=(256, 16384), width=(32, 2048), hidden=(128, 8192), pairs=(2, 4))
WEAK = sizes(samples=(64, 3072), width=(32, 2048), hidden=(128, 8192), pairs=(2, 4))

STATE, SAMPLES = P(), P("data")


def compiled(mesh: Mesh) -> Callable[..., Any]:
    """The step; the new state is on every device, as the old one was."""
    return jax.jit(train_step(), donate_argnums=0, out_shardings=shardings(mesh, (STATE, P())))


def data_parallel(size: Extent, devices: int, samples: int, series: str, claims: Sequence[Claim]) -> Computation:
    """A batch of ``samples`` spread over the devices, against all of it on each of them."""
    mesh = grid(data=devices)
    numbers = make_numbers(size, samples)
    spread = jax.device_put(numbers[1:], shardings(mesh, SAMPLES))
    return Computation(
        subject=compiled(mesh),
        reference=gathered(train_step(), mesh),
        args=(jax.device_put(numbers[0], shardings(mesh, STATE)), *spread),
        carry=0,
        batch=Batch(argument=1, size=samples),
        amount=Amount(count=samples, unit="samples", series=series),
        rtol=RTOL,
        claims=[*TRAINED, *exchanged(devices), *claims],
    )


COUNTS = (1, 2, 4, 8)


@on_devices(CASES, "data-parallel-step-strong-on-{devices}-vs-gathered", COUNTS, STRONG)
def strong(size: Extent, devices: int) -> Computation:
    """The same batch on any number of devices."""
    return data_parallel(
        size,
        devices,
        size.samples,
        "data-parallel, strong",
        claims=[
            claim(
                f"xla_flops <= {1.2 / devices} * reference", "a device works on its share, and nothing is done twice"
            ),
            claim(
                f"temp_bytes <= {1 / devices + 0.3} * reference",
                "activations of its share; the gradients are those of all",
            ),
        ],
    )


@on_devices(CASES, "data-parallel-step-weak-on-{devices}-vs-gathered", COUNTS, WEAK)
def weak(size: Extent, devices: int) -> Computation:
    """The same share for each device; the alternative is one device with its share."""
    alone = grid(data=1)
    numbers = make_numbers(size, size.samples)
    share = shapes(numbers[1:], shardings(alone, (SAMPLES, SAMPLES)))
    state = jax.tree.map(lambda leaf: shapes(leaf, shardings(alone, STATE)), numbers[0])
    claims = [
        claim("xla_flops <= 1.1 * alternatives", "the work of a device does not grow with their number"),
        claim("peak_bytes <= 1.35 * alternatives", "nor does its memory, but for gradients on their way"),
    ]
    return replace(
        data_parallel(size, devices, devices * size.samples, "data-parallel, weak", claims),
        alternatives={"one-device": Alternative(function=compiled(alone), args=(state, *share))},
    )


def exchanged(devices: int) -> tuple[Claim, ...]:
    """What a data-parallel step may send, on any number of devices."""
    if devices == 1:
        return (claim("collectives == 0", "one device has nobody to talk to"),)
    return (
        # Half of the state is parameters; the loss is a few bytes more.
        claim("collective_bytes <= 0.51 * donated_bytes", "gradients are sent once, however many devices"),
    )
