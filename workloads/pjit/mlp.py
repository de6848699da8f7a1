"""Meshes by their names in the ids, and a perceptron's training step on them, by automatic and by explicit axes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Batch, Claim, Computation, Family, claim
from workloads.parts import Draw, Extent, Tree, another, descend, drawing, grid, over_samples, sizes, squared_error

CASES = Family("pjit")

MESHES: dict[str, dict[str, int]] = {
    "8": {"data": 8},
    "4": {"data": 4},
    "2x2": {"data": 2, "model": 2},
    "4x2": {"data": 4, "model": 2},
    "2x4": {"data": 2, "model": 4},
    "1x8": {"data": 1, "model": 8},
}
"""Devices along each axis: the batch goes over ``data``, hidden units, heads or vocabulary over ``model``."""

RATE = 0.05

TRAINED: tuple[Claim, ...] = (
    claim("matmul_flops == reference", "one forward, one backward pass"),
    claim("donated_bytes >= 1", "the parameters are donated"),
    claim("aliased_bytes >= donated_bytes", "new parameters have the layout of the old ones"),
)
"""What holds for every training step on a mesh."""

AGAINST = {"none": "batch", "model": "swapped", "hybrid": "swapped", "fsdp": "batch", "full": "batch"}
"""The strategy that a training step by another one is held against; splitting the batch is held against none."""


def mesh_of(name: str) -> Mesh:
    return grid(**MESHES[name])


def devices_of(name: str) -> int:
    return prod(MESHES[name].values())


def shardings(mesh: Mesh, specs: Tree) -> Tree:
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda leaf: isinstance(leaf, P))


def shapes(tree: Tree, layout: Tree) -> Tree:
    """Arrays without data, in a layout: what an alternative is compiled for."""

    def shape(array: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)

    return jax.tree.map(shape, tree, layout)


def gathered(step: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """The naive way: every device collects all arguments and does all the work."""
    everywhere = NamedSharding(mesh, P())

    def whole(*args: Any) -> Any:
        return jax.lax.with_sharding_constraint(step(*jax.lax.with_sharding_constraint(args, everywhere)), everywhere)

    return jax.jit(whole)


def descending(network: Callable[[Tree, jax.Array], jax.Array]) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step of gradient descent on the squared error, parameters in and out: x and y [batch, width]."""

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(lambda params: squared_error(network(params, x), y))(params)
        return descend(params, grads, RATE), loss

    return step


def on_meshes(
    family: Family, sentence: str, sweep: Iterable[Mapping[str, Any]], sizes: Mapping[Any, Any]
) -> Callable[[Any], Any]:
    """Add cases to a family as ``Family.workload`` does, each with as many devices as its ``mesh`` has."""

    def add(build: Any) -> Any:
        for params in sweep:
            family.workload(sentence, sweep=[params], sizes=sizes, devices=devices_of(params["mesh"]))(build)
        return build

    return add


# A multi-layer perceptron's training step on a mesh, by the usual strategies.

SIZES = sizes(batch=(64, 4096), width=(64, 2048), hidden=(256, 8192), pairs=2)
"""Samples, features, hidden units and pairs of layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where things live."""

    batch: P  # samples [batch, width]
    up: P  # first kernel of a pair [width, hidden]
    down: P  # second kernel of a pair [hidden, width]
    hidden: P  # hidden units [batch, hidden]
    gather: bool = False  # whether kernels are collected for their use


LAYOUTS = {
    "none": Layout(batch=P(), up=P(), down=P(), hidden=P()),
    "batch": Layout(batch=P("data"), up=P(), down=P(), hidden=P("data")),
    "model": Layout(batch=P(), up=P(None, "model"), down=P("model"), hidden=P(None, "model")),
    "hybrid": Layout(batch=P("data"), up=P(None, "model"), down=P("model"), hidden=P("data", "model")),
    "fsdp": Layout(batch=P("data"), up=P("data"), down=P("data"), hidden=P("data"), gather=True),
    "full": Layout(
        batch=P(("data", "model")),
        up=P("data", "model"),
        down=P("model", "data"),
        hidden=P(("data", "model")),
        gather=True,
    ),
    # Not advised: each product needs all of what the one before it has spread.
    "swapped": Layout(batch=P("data"), up=P("model"), down=P(None, "model"), hidden=P("data")),
}


def network(params: Tree, x: jax.Array, layout: Layout, place: Callable[..., Any]) -> jax.Array:
    """Pairs of layers with residuals: x [batch, width] to [batch, width]."""
    for pair in params:
        used = place(pair, P()) if layout.gather else pair
        hidden = place(jnp.tanh(x @ used["up"]), layout.hidden)
        x = place(x + hidden @ used["down"], layout.batch)
    return x


def train_step(layout: Layout, mesh: Mesh | None) -> Callable[..., tuple[Tree, jax.Array]]:
    """The step in a layout; without a mesh nothing is said of where."""

    def place(x: Any, spec: P) -> Any:
        return x if mesh is None else jax.lax.with_sharding_constraint(x, shardings(mesh, spec))

    return descending(lambda params, x: network(params, x, layout, place))


def make_params(draw: Draw, size: Extent) -> list[dict[str, Any]]:
    """Draw ``up`` [width, hidden] and ``down`` [hidden, width] of each pair; NumPy arrays."""
    width, hidden = size.width, size.hidden
    up, down = np.float32(width**-0.5), np.float32(hidden**-0.5)
    return [{"up": up * draw((width, hidden)), "down": down * draw((hidden, width))} for _ in range(size.pairs)]


def stored(layout: Layout, mesh: Mesh, pairs: int) -> Tree:
    return shardings(mesh, ([{"up": layout.up, "down": layout.down}] * pairs, layout.batch))


def sharded_step(layout: Layout, mesh: Mesh, pairs: int) -> Callable[..., Any]:
    """The step, compiled for a layout; parameters come back as they went in."""
    kernels, _ = stored(layout, mesh, pairs)
    jitted: Callable[..., Any] = jax.jit(
        train_step(layout, mesh), donate_argnums=0, out_shardings=(kernels, shardings(mesh, P()))
    )
    return jitted


def alternative(strategy: str, mesh: Mesh, size: Extent, args: tuple[Any, ...]) -> Alternative:
    """The same step by another strategy, or on another mesh."""
    kernels, samples = stored(LAYOUTS[strategy], mesh, size.pairs)
    return Alternative(
        function=sharded_step(LAYOUTS[strategy], mesh, size.pairs), args=shapes(args, (kernels, samples, samples))
    )


SWEEP = (
    ("none", "8"),
    ("batch", "4"),
    ("model", "1x8"),
    ("hybrid", "2x2"),
    ("hybrid", "2x4"),
    ("fsdp", "4"),
    ("full", "4x2"),
)


@on_meshes(
    CASES,
    "pjit-mlp-train-step-{strategy}-on-{mesh}-vs-gathered",
    tuple({"strategy": strategy, "mesh": mesh} for strategy, mesh in SWEEP),
    SIZES,
)
def build(size: Extent, strategy: str, mesh: str) -> Computation:
    devices, layout = mesh_of(mesh), LAYOUTS[strategy]
    kernels, samples = stored(layout, devices, size.pairs)
    draw = drawing()
    numbers = (make_params(draw, size), draw((size.batch, size.width)), draw((size.batch, size.width)))
    args, against = jax.device_put(numbers, (kernels, samples, samples)), AGAINST.get(strategy)
    return Computation(
        subject=sharded_step(layout, devices, size.pairs),
        reference=gathered(train_step(layout, None), devices),
        args=args,
        grow=over_samples(args, 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        alternatives={against: alternative(against, devices, size, numbers)} if against else {},
        claims=claims(strategy, mesh),
    )


def claims(strategy: str, mesh: str) -> tuple[Claim, ...]:
    """What each strategy must give, on any hardware."""
    count = devices_of(mesh)
    shared = claim(f"xla_flops <= {1.3 / count} * reference", "the devices share the work")
    each: dict[str, tuple[Claim, ...]] = {
        "none": (
            claim("collectives == 0", "what everybody has and does needs no communication"),
            claim(f"xla_flops >= {0.7 * count} * alternatives", "but each device does the work of all"),
        ),
        "batch": (shared, claim("collective_bytes <= 1.01 * output_bytes", "gradients and loss are summed once")),
        "model": (
            shared,
            claim("peak_bytes <= 0.6 * reference", "a device holds its share of parameters and hidden units"),
            claim("collective_bytes <= 0.5 * reference", "activations travel, parameters do not"),
            claim("collective_bytes <= 0.6 * alternatives", "columns, then rows: hidden units stay where they are"),
        ),
        "hybrid": (
            shared,
            claim("peak_bytes <= 0.7 * reference", "a device holds its share of parameters and activations"),
            claim("collective_bytes <= 1.3 * argument_bytes", "its own gradients, and few activations"),
            claim("collective_bytes <= 0.9 * alternatives", "columns, then rows: hidden units stay where they are"),
        ),
        "fsdp": (
            shared,
            claim(f"argument_bytes <= {1.6 / count} * alternatives", "each parameter is stored once"),
            claim("peak_bytes <= 0.85 * alternatives", "and what is gathered for use does not undo that"),
            claim("collective_bytes <= 3.1 * alternatives", "gathered for each pass, gradients summed once"),
        ),
        "full": (
            shared,
            claim(f"argument_bytes <= {1.6 / count} * alternatives", "each parameter is stored once"),
            claim("peak_bytes <= 0.85 * alternatives", "and what is gathered for use does not undo that"),
            claim("collective_bytes <= 3.6 * alternatives", "gathered by one axis, then by the other"),
        ),
    }
    return (*TRAINED, *each[strategy])


# Explicit axes: the layout is part of an array's type, and every change of it stands in the program.


def explicit_mesh(name: str) -> Mesh:
    """The mesh of that name, all of its axes explicit."""
    axes = MESHES[name]
    devices = jax.local_devices()[: devices_of(name)]
    types = (AxisType.Explicit,) * len(axes)
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=types, devices=devices)


def explicit_network(params: Tree, x: jax.Array, layout: Layout, mesh: Mesh) -> jax.Array:
    """Pairs of layers with residuals, as in ``network``, each product saying where its result goes."""

    def resting(spec: P) -> NamedSharding:
        return NamedSharding(mesh, spec)

    for pair in params:
        used = jax.sharding.reshard(pair, resting(P())) if layout.gather else pair
        hidden = jnp.tanh(jnp.einsum("bw,wh->bh", x, used["up"], out_sharding=resting(layout.hidden)))
        x = x + jnp.einsum("bh,hw->bw", hidden, used["down"], out_sharding=resting(layout.batch))
    return x


def explicit_train_step(layout: Layout, mesh: Mesh) -> Callable[..., tuple[Tree, jax.Array]]:
    """The step, of whose results nothing is said: their layout follows."""
    return descending(lambda params, x: explicit_network(params, x, layout, mesh))


EXPLICIT = (("hybrid", "4x2"), ("fsdp", "8"))


@on_meshes(
    CASES,
    "pjit-mlp-train-step-{strategy}-on-{mesh}-with-explicit-axes-vs-gathered",
    tuple({"strategy": strategy, "mesh": mesh} for strategy, mesh in EXPLICIT),
    SIZES,
)
def explicit(size: Extent, strategy: str, mesh: str) -> Computation:
    """Explicit axes, against collecting everything; the alternative is the same layout by automatic axes."""
    devices, layout, draw = explicit_mesh(mesh), LAYOUTS[strategy], drawing()
    numbers = (make_params(draw, size), draw((size.batch, size.width)), draw((size.batch, size.width)))
    kernels, samples = stored(layout, devices, size.pairs)
    everywhere = explicit_train_step(LAYOUTS["none"], devices)

    def gathered(*args: Any) -> Any:
        return everywhere(*jax.sharding.reshard(args, NamedSharding(devices, P())))

    automatic = mesh_of(mesh)
    free_kernels, free_samples = stored(layout, automatic, size.pairs)
    return Computation(
        subject=jax.jit(explicit_train_step(layout, devices), donate_argnums=0),
        reference=jax.jit(gathered),
        args=jax.device_put(numbers, (kernels, samples, samples)),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        alternatives=another(
            "automatic",
            sharded_step(layout, automatic, size.pairs),
            shapes(numbers, (free_kernels, free_samples, free_samples)),
        ),
        claims=[
            *TRAINED,
            claim(f"xla_flops <= {1.3 / devices_of(mesh)} * reference", "the devices share the work"),
            claim("collective_bytes <= 1.05 * alternatives", "what is written moves no more than what is inserted"),
            claim("peak_bytes <= 1.1 * alternatives", "nor does it hold more"),
            claim("argument_bytes == alternatives", "one layout, spelled in two ways"),
        ],
    )
