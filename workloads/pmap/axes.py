"""Parameters that are sharded instead of copied, and where ``pmap`` takes arguments apart and puts results together.

``pmap`` with replicated parameters stores them once for each device. Sharded, they are stored once in all.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Alternative, Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_layer, mlp_params, sizes, squared_error
from workloads.pmap.steps import AXIS, DEVICES, RATE, copied, gradients, line, stacked, whole

CASES = Family("pmap")

DEEP = 3
LEAVES = 2 * DEEP  # a kernel and a bias each

SHARDED = sizes(width=(128, 4096), samples=(2, 64))
"""A network of ``width``, and ``samples`` for each device: few, as this is about what the parameters take."""


def gathered(layer: Tree) -> Tree:
    """Bring a layer together from all devices; its gradient is scattered to them on the way back."""
    return jax.tree.map(lambda shard: jax.lax.all_gather(shard, AXIS, tiled=True), layer)


def predict(shards: Tree, x: jax.Array) -> jax.Array:
    """The network, one layer gathered at a time: x [samples, width] to [samples, width]."""
    for shard in shards:
        layer = gathered(shard)
        x = mlp_layer(layer, x)
    return x


def step(shards: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """One device's step: the gradients of its shard come summed over all devices, the loss is local."""
    loss, grads = jax.value_and_grad(lambda p: squared_error(predict(p, x), y))(shards)
    grads = jax.tree.map(lambda grad: grad / DEVICES, grads)
    return descend(shards, grads, RATE), jax.lax.pmean(loss, AXIS)


def replica_step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """The step of a device that keeps everything."""
    loss, grads = jax.lax.pmean(gradients(params, x, y), AXIS)
    return descend(params, grads, RATE), loss


def whole_step(shards: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """The same step of one device that has all shards and all samples."""
    x, y = (leaf.reshape(-1, leaf.shape[-1]) for leaf in (x, y))
    params = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), shards)
    loss, grads = gradients(params, x, y)
    params = descend(params, grads, RATE)
    return jax.tree.map(lambda new, old: new.reshape(old.shape), params, shards), jnp.broadcast_to(loss, DEVICES)


@CASES.workload("fsdp-step-on-shards-vs-one-device", sizes=SHARDED, devices=DEVICES)
def fsdp(size: Extent) -> Computation:
    mesh = line()
    draw = drawing()
    params = mlp_params(draw, size.width, DEEP)
    shards = stacked(jax.tree.map(lambda leaf: leaf.reshape(DEVICES, -1, *leaf.shape[1:]), params), mesh)
    shape = (DEVICES, size.samples, size.width)
    x, y = stacked((draw(shape), draw(shape)), mesh)

    def copies(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((DEVICES, *leaf.shape), np.float32, sharding=x.sharding)

    replicated = Alternative(function=jax.pmap(replica_step, axis_name=AXIS), args=(jax.tree.map(copies, params), x, y))
    return Computation(
        subject=jax.pmap(step, axis_name=AXIS, donate_argnums=0),
        reference=jax.jit(whole_step),
        args=(shards, x, y),
        carry=0,
        batch=Batch(argument=1, size=size.samples, axis=1),
        amount=Amount(count=DEVICES * size.samples, unit="samples"),
        alternatives={"replicated": replicated},
        claims=[
            claim("argument_bytes <= 0.15 * alternatives", "a device stores an eighth of the parameters"),
            claim("aliased_bytes >= donated_bytes", "every shard steps in its own memory"),
            claim("matmul_flops == reference", "nothing is computed twice"),
            claim(f"collectives <= {2 * LEAVES + 2}", "each array is gathered once, each gradient scattered once"),
            claim(f"collective_bytes <= {2.02 * DEVICES} * donated_bytes", "parameters come, gradients go"),
        ],
    )


# Where ``pmap`` takes its arguments apart, puts its results together, and on which devices.

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
    sent = 1 if out_axis is None else 0
    return (
        claim("matmul_flops == reference", "every sample is computed on one device"),
        claim(f"collectives == {sent}", "only the mean travels, and it once" if sent else "nothing has to travel"),
        claim("argument_bytes >= 0.95 * alternatives", "a broadcast argument is whole on every device"),
    )
