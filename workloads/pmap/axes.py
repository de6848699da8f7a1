"""Where ``pmap`` takes its arguments apart, puts its results together, and on which devices.

``axis_name`` is needed for collectives only; ``in_axes=None`` gives every device a whole copy; ``out_axes=None`` hands
back one device's result and checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Alternative, Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, mlp, mlp_params, sizes
from workloads.pmap.replicas import AXIS, DEVICES, copied, line, stacked, whole

CASES = Family("pmap")

LAYERS = 2


SIZES = sizes(width=(64, 4096), samples=(8, 2048))
"""A network of ``width``, and ``samples`` for each device."""


def averaged(params: Tree, x: jax.Array) -> jax.Array:
    """The mean over all devices of what each computes: the same on all, so that one may be handed back."""
    return jax.lax.pmean(mlp(params, x), AXIS)


def sent_on(params: Tree, x: jax.Array) -> jax.Array:
    """What each device computes, handed to the next in the row, from the last to the first."""
    count = jax.lax.axis_size(AXIS)
    return jax.lax.ppermute(mlp(params, x), AXIS, [(i, (i + 1) % count) for i in range(count)])


def sent_on_by_one_device(params: Tree, x: jax.Array) -> jax.Array:
    """The same, of one device that has everything: x [devices, samples, width]."""
    return jnp.roll(mlp(params, x), 1, axis=0)


ROWS: dict[str, Callable[[Sequence[jax.Device]], list[jax.Device]]] = {
    "every-other-device": lambda devices: list(devices[::2]),
    "devices-in-reverse-order": lambda devices: list(devices[::-1]),
}
SWEEP = ({"in_axis": 1, "out_axis": 1}, {"in_axis": 0, "out_axis": None})


@CASES.workload(
    "forward-with-parameters-broadcast-samples-on-axis-{in_axis}-results-on-axis-{out_axis}-vs-one-device",
    sweep=SWEEP,
    sizes=SIZES,
    devices=DEVICES,
)
def placed(size: Extent, in_axis: int, out_axis: int | None) -> Computation:
    """A network with its parameters broadcast, its samples mapped over any axis; against one device."""
    mesh = line()
    draw = drawing()
    params = mlp_params(draw, size.width, LAYERS)
    shape = [size.samples, size.width]
    shape.insert(in_axis, DEVICES)
    x = draw(tuple(shape))
    function: Callable[..., Any] = averaged if out_axis is None else mlp
    ways: dict[str, Any] = {"in_axes": (None, in_axis), "out_axes": out_axis}
    if out_axis is None:
        ways["axis_name"] = AXIS
    samples = stacked(x, mesh, in_axis)
    stack = Alternative(
        function=jax.pmap(function, **{**ways, "in_axes": (0, in_axis)}), args=(copied(params, mesh), samples)
    )
    return Computation(
        subject=jax.pmap(function, **ways),
        reference=jax.jit(jax.vmap(function, **ways)),
        args=(whole(params, mesh), samples),
        batch=Batch(argument=1, size=size.samples, axis=1 - in_axis),
        amount=Amount(count=DEVICES * size.samples, unit="samples"),
        alternatives={"stacked parameters": stack},
        claims=placed_claims(out_axis),
    )


@CASES.workload(
    "forward-on-{where}-vs-one-device", sweep=tuple({"where": name} for name in ROWS), sizes=SIZES, devices=DEVICES
)
def chosen(size: Extent, where: str) -> Computation:
    """A network on devices that were asked for; results go round in their order, not in the machine's."""
    devices = ROWS[where](jax.local_devices()[:DEVICES])
    mesh = line(devices)
    draw = drawing()
    params = mlp_params(draw, size.width, LAYERS)
    return Computation(
        subject=jax.pmap(sent_on, axis_name=AXIS, in_axes=(None, 0), devices=devices),
        reference=jax.jit(sent_on_by_one_device),
        args=(whole(params, mesh), stacked(draw((len(devices), size.samples, size.width)), mesh)),
        batch=Batch(argument=1, size=size.samples, axis=1),
        amount=Amount(count=len(devices) * size.samples, unit="samples"),
        claims=[
            claim("matmul_flops == reference", "every sample is computed on one device"),
            claim("collectives == 1", "each result is handed on once"),
            claim("collective_bytes <= output_bytes", "and nothing else is"),
        ],
    )


def placed_claims(out_axis: int | None) -> tuple[Claim, ...]:
    """What broadcasting and mapping must cost, on any hardware."""
    sent = 1 if out_axis is None else 0
    return (
        claim("matmul_flops == reference", "every sample is computed on one device"),
        claim(f"collectives == {sent}", "only the mean travels, and it once" if sent else "nothing has to travel"),
        claim(
            "argument_bytes >= 0.95 * alternatives", "a broadcast argument is whole on every device, as a stacked one"
        ),
    )
