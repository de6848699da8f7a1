"""Fully sharded parameters by ``pmap``: each device keeps an eighth of every array and gathers a layer when it needs it.

``pmap`` with replicated parameters stores them once for each device. Sharded, they are stored once in all.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_layer, mlp_params, sizes, squared_error
from workloads.pmap.replicas import AXIS, DEVICES, line, stacked

CASES = Family("pmap")

RATE = 0.05
LAYERS = 3
LEAVES = 2 * LAYERS  # a kernel and a bias each


SIZES = sizes(width=(128, 4096), samples=(2, 64))
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
    loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
    loss, grads = jax.lax.pmean((loss, grads), AXIS)
    return descend(params, grads, RATE), loss


def whole_step(shards: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """The same step of one device that has all shards and all samples."""
    x, y = (leaf.reshape(-1, leaf.shape[-1]) for leaf in (x, y))
    params = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), shards)
    loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
    params = descend(params, grads, RATE)
    return jax.tree.map(lambda new, old: new.reshape(old.shape), params, shards), jnp.broadcast_to(loss, DEVICES)


@CASES.workload("fsdp-step-on-shards-vs-one-device", sizes=SIZES, devices=DEVICES)
def fsdp(size: Extent) -> Computation:
    """A step on shards, beside the same step on replicas."""
    mesh = line()
    draw = drawing()
    params = mlp_params(draw, size.width, LAYERS)
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
            claim(
                "argument_bytes <= 0.15 * alternatives", "a device stores an eighth of the parameters, not all of them"
            ),
            claim("aliased_bytes >= donated_bytes", "every shard steps in its own memory"),
            claim("matmul_flops == reference", "nothing is computed twice"),
            claim(f"collectives <= {2 * LEAVES + 2}", "each array is gathered once, each gradient scattered once"),
            claim(
                f"collective_bytes <= {2.02 * DEVICES} * donated_bytes", "parameters come and gradients go, each once"
            ),
        ],
    )
