"""Data-parallel training steps by ``pmap``: every replica sees its share, and all take the same step.

Without the mean of the gradients each replica trains alone, at full speed and without an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_params, sizes, squared_error
from workloads.pmap.replicas import AXIS, DEVICES, copied, line, mapped, stacked

CASES = Family("pmap")

RATE, DECAY = 0.05, 0.9
LAYERS = 3
LEAVES = 2 * LAYERS  # a kernel and a bias each


SIZES = sizes(width=(64, 2048), samples=(8, 2048))
"""A network of ``width``, and ``samples`` for each device."""


FLOPS = claim("matmul_flops == reference", "one forward, one backward pass over every sample once")
REUSED = claim("aliased_bytes >= donated_bytes", "every replica steps in its own memory")
DATA_PARALLEL = (
    FLOPS,
    REUSED,
    claim(f"collectives == {LEAVES + 1}", "each gradient and the loss travel once"),
    claim("collective_bytes >= donated_bytes", "all gradients travel"),
    claim("collective_bytes <= 1.01 * donated_bytes", "and nothing else does, in no wider type"),
)
SAME = ("matmul_flops", "collectives", "collective_bytes", "argument_bytes", "output_bytes", "aliased_bytes")
"""Facts of ``pmap`` that are those of its twin: it is the same program."""


def gradients(params: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Tree]:
    """Loss and gradients of the samples given: x, y [samples, width]."""
    loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
    return loss, grads


def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """One replica's step; the gradients and the loss are averaged over all replicas."""
    loss, grads = gradients(params, x, y)
    grads = jax.lax.pmean(grads, AXIS)
    loss = jax.lax.pmean(loss, AXIS)
    return descend(params, grads, RATE), loss


def whole_step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """The same step of one device on the whole batch; every replica must come out like it."""
    first = jax.tree.map(lambda leaf: leaf[0], params)
    loss, grads = gradients(first, x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1]))
    params, loss = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (DEVICES, *leaf.shape)), (descend(first, grads, RATE), loss)
    )
    return params, loss


def momentum_step(state: tuple[Tree, Tree], x: jax.Array, y: jax.Array) -> tuple[tuple[Tree, Tree], jax.Array]:
    """One replica's step with momentum: parameters and velocity in and out."""
    params, velocity = state
    loss, grads = jax.lax.pmean(gradients(params, x, y), AXIS)
    velocity = jax.tree.map(lambda v, g: DECAY * v + g, velocity, grads)
    return (descend(params, velocity, RATE), velocity), loss


def inputs(size: Extent, mesh: Mesh) -> tuple[Tree, Any, Any]:
    """Parameters on every device; x and y [devices, samples, width]."""
    draw = drawing()
    params = mlp_params(draw, size.width, LAYERS)
    shape = (DEVICES, size.samples, size.width)
    return copied(params, mesh), *stacked((draw(shape), draw(shape)), mesh)


def computation(size: Extent, subject: Callable[..., Any], args: tuple[Any, ...], **more: Any) -> Computation:
    """A training step that returns the state first; each device's samples are on axis 1."""
    return Computation(
        subject=subject,
        args=args,
        amount=Amount(count=DEVICES * size.samples, unit="samples"),
        **{"batch": Batch(argument=1, size=size.samples, axis=1), "carry": 0, **more},
    )


@CASES.workload(
    "data-parallel-step-by-{way}-vs-one-device",
    sweep=({"way": "pmap"}, {"way": "jit-shard-map"}),
    sizes=SIZES,
    devices=DEVICES,
)
def against_one_device(size: Extent, way: str) -> Computation:
    """The step of eight replicas against one device with all samples."""
    mesh = line()
    ways = {
        "pmap": jax.pmap(step, axis_name=AXIS, donate_argnums=0),
        "jit-shard-map": jax.jit(mapped(step, mesh), donate_argnums=0),
    }
    return computation(size, ways[way], inputs(size, mesh), reference=jax.jit(whole_step), claims=DATA_PARALLEL)


@CASES.workload("step-with-donated-replicas-vs-copied", sizes=SIZES, devices=DEVICES)
def donated(size: Extent) -> Computation:
    """Parameters and velocity, a copy on each device, donated against copied once more at every step."""
    params, x, y = inputs(size, line())
    velocity = jax.tree.map(lambda leaf: jax.device_put(np.zeros(leaf.shape, np.float32), leaf.sharding), params)
    return computation(
        size,
        jax.pmap(momentum_step, axis_name=AXIS, donate_argnums=0),
        ((params, velocity), x, y),
        reference=jax.pmap(momentum_step, axis_name=AXIS),
        claims=[
            FLOPS,
            REUSED,
            claim("donated_bytes >= 1", "the replicated state is donated at all"),
            claim("state_bytes <= 0.6 * reference", "old and new replicas share their memory"),
            claim("peak_bytes <= reference", "and nothing is paid for it while the step runs"),
            claim("collective_bytes == reference", "donation moves nothing"),
        ],
    )


def split(x: jax.Array) -> jax.Array:
    """Deal the samples out: [batch, width] to [devices, batch / devices, width]."""
    return x.reshape(DEVICES, -1, x.shape[-1])


@CASES.workload("step-on-a-batch-dealt-to-replicas-vs-one-device", sizes=SIZES, devices=DEVICES)
def dealt(size: Extent) -> Computation:
    """A batch that comes in one piece and is dealt out to the replicas; all of it is processed."""
    mesh = line()
    params, *samples = inputs(size, mesh)
    x, y = (leaf.reshape(-1, size.width) for leaf in samples)
    replicas = jax.pmap(step, axis_name=AXIS, in_axes=(0, 0, 0))

    def train(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        return replicas(params, split(x), split(y))

    return computation(
        size,
        jax.jit(train, donate_argnums=0),
        (params, *stacked((x, y), mesh)),
        reference=jax.jit(whole_step),
        batch=Batch(argument=1, size=DEVICES * size.samples),
        claims=DATA_PARALLEL,
    )
