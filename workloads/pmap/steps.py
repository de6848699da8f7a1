"""Replicas and their data-parallel steps by ``pmap``: what is mapped is stacked, an entry of the stack on each device."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_params, sizes, squared_error

CASES = Family("pmap")

AXIS = "data"
DEVICES = 8


def line(devices: int | Sequence[jax.Device] = DEVICES) -> Mesh:
    """A mesh of one axis in the very order of the devices, as ``pmap`` lays them out: nothing moves before a call."""
    return Mesh(np.array(jax.local_devices()[:devices] if isinstance(devices, int) else devices), (AXIS,))


def stacked(tree: Tree, mesh: Mesh, axis: int = 0) -> Tree:
    """Place a tree whose leaves have one entry for each device on ``axis``."""
    return jax.device_put(tree, NamedSharding(mesh, P(*(None,) * axis, AXIS)))


def copied(tree: Tree, mesh: Mesh) -> Tree:
    """Place a copy of each leaf on every device: leaves [...] become [devices, ...]."""
    return stacked(jax.tree.map(lambda leaf: np.broadcast_to(leaf, (mesh.size, *leaf.shape)), tree), mesh)


def whole(tree: Tree, mesh: Mesh) -> Tree:
    """Place each leaf on every device, as it is: what ``in_axes=None`` broadcasts."""
    return jax.device_put(tree, NamedSharding(mesh, P()))


def mapped(function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """The twin of ``pmap``: a function of one device's entries, by ``shard_map`` over stacked arguments and results."""

    def one(*args: Any) -> Any:
        result = function(*jax.tree.map(lambda leaf: leaf[0], args))
        return jax.tree.map(lambda leaf: leaf[None], result)

    return jax.shard_map(one, mesh=mesh, in_specs=P(AXIS), out_specs=P(AXIS))


# Data-parallel training steps by ``pmap``: every replica sees its share, and all take the same step.

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
    mesh = line()
    ways = {
        "pmap": jax.pmap(step, axis_name=AXIS, donate_argnums=0),
        "jit-shard-map": jax.jit(mapped(step, mesh), donate_argnums=0),
    }
    return computation(size, ways[way], inputs(size, mesh), reference=jax.jit(whole_step), claims=DATA_PARALLEL)


@CASES.workload("step-with-donated-replicas-vs-copied", sizes=SIZES, devices=DEVICES)
def donated(size: Extent) -> Computation:
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


# What replicas send each other: gradients in a narrow type, and figures that travel together.


def half_gradients(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
    """Gradients in bfloat16, of parameters kept in float32."""
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, x, y))
    return gradients(*half)[1]


def widen(tree: Tree) -> Tree:
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def narrow_step(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
    """Average the gradients as they are, in bfloat16, and widen the mean."""
    grads = widen(jax.lax.pmean(half_gradients(params, x, y), AXIS))
    return descend(params, grads, RATE)


def wide_step(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
    """Widen the gradients first: twice as many bytes travel, and say no more."""
    grads = jax.lax.pmean(widen(half_gradients(params, x, y)), AXIS)
    return descend(params, grads, RATE)


def figures(params: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """What is watched of one replica's samples, four scalars."""
    error = mlp(params, x) - y
    return (error**2).mean(), jnp.abs(error).mean(), error.mean(), (jnp.abs(error) < 1).mean(dtype=jnp.float32)


def evaluate(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """All figures travel as one vector, [4]."""
    return jax.lax.pmean(jnp.stack(figures(params, x, y)), AXIS)


def evaluate_apart(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """Each figure waits for a collective of its own."""
    return jnp.stack([jax.lax.pmean(figure, AXIS) for figure in figures(params, x, y)])


@CASES.workload("step-with-bfloat16-gradients-reduced-vs-widened-first", sizes=SIZES, devices=DEVICES)
def narrow(size: Extent) -> Computation:
    return computation(
        size,
        jax.pmap(narrow_step, axis_name=AXIS, donate_argnums=0),
        inputs(size, line()),
        reference=jax.pmap(wide_step, axis_name=AXIS),
        rtol=1e-2,
        claims=[
            FLOPS,
            REUSED,
            claim("collective_bytes <= 0.51 * reference", "bfloat16 gradients travel in half the bytes"),
            claim("widened_bytes <= reference", "only the mean is widened"),
        ],
    )


@CASES.workload("metrics-reduced-as-one-vector-vs-one-by-one", sizes=SIZES, devices=DEVICES)
def watched(size: Extent) -> Computation:
    return computation(
        size,
        jax.pmap(evaluate, axis_name=AXIS),
        inputs(size, line()),
        reference=jax.pmap(evaluate_apart, axis_name=AXIS),
        carry=None,
        claims=[
            claim("matmul_flops == reference", "one forward pass"),
            claim("collectives == 1", "all figures travel together"),
            claim("collectives <= 0.25 * reference", "one by one each of the four waits for all devices"),
        ],
    )
