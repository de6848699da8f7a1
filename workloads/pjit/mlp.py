"""A multi-layer perceptron's training step on a mesh, by the usual strategies.

Each pair of layers is laid out as Megatron does: the first kernel by columns, the second by rows, so that hidden
units never travel and one sum for each pair and pass is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Batch, Claim, Computation, Family, claim
from workloads.parts import Draw, Extent, Tree, descend, drawing, over_samples, sizes, squared_error
from workloads.pjit.meshes import AGAINST, TRAINED, devices_of, gathered, mesh_of, on_meshes, shapes, shardings

CASES = Family("pjit")

RATE = 0.05


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

Place = Callable[[Any, P], Any]


def network(params: Tree, x: jax.Array, layout: Layout, place: Place) -> jax.Array:
    """Pairs of layers with residuals: x [batch, width] to [batch, width]."""
    for pair in params:
        used = place(pair, P()) if layout.gather else pair
        hidden = place(jnp.tanh(x @ used["up"]), layout.hidden)
        x = place(x + hidden @ used["down"], layout.batch)
    return x


def train_step(layout: Layout, mesh: Mesh | None) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step of gradient descent, parameters in and out; without a mesh nothing is said of where."""

    def place(x: Any, spec: P) -> Any:
        return x if mesh is None else jax.lax.with_sharding_constraint(x, shardings(mesh, spec))

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        def loss_of(params: Tree) -> jax.Array:
            return squared_error(network(params, x, layout, place), y)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return descend(params, grads, RATE), loss

    return step


def make_params(draw: Draw, size: Extent) -> list[dict[str, Any]]:
    """Draw ``up`` [width, hidden] and ``down`` [hidden, width] of each pair; NumPy arrays."""
    width, hidden = size.width, size.hidden
    up, down = np.float32(width**-0.5), np.float32(hidden**-0.5)
    return [{"up": up * draw((width, hidden)), "down": down * draw((hidden, width))} for _ in range(size.pairs)]


def stored(layout: Layout, mesh: Mesh, pairs: int) -> Tree:
    """Shardings of the parameters and of the samples."""
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
    """The step by a strategy, against collecting everything."""
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
