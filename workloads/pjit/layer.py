"""One transformer layer's training step on a mesh: attention by heads, the perceptron by hidden units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Tree, block, block_params, descend, drawing, squared_error
from workloads.pjit.meshes import AGAINST, TRAINED, devices_of, gathered, mesh_of, on_meshes, shapes, shardings

CASES = Family("pjit")

RATE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Sequences, tokens of each, features, heads and hidden units."""

    batch: int
    time: int
    width: int
    heads: int
    hidden: int


SIZES = {
    "small": Size(batch=8, time=16, width=64, heads=8, hidden=256),
    "full": Size(batch=8, time=512, width=2048, heads=16, hidden=8192),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where things live."""

    batch: P  # activations [batch, time, width]
    into: P  # query, key and value [width, heads x dim] and `up` [width, hidden]
    back: P  # `out` [heads x dim, width] and `down` [hidden, width]
    gather: bool = False  # whether kernels are collected for their use


LAYOUTS = {
    "none": Layout(batch=P(), into=P(), back=P()),
    "batch": Layout(batch=P("data"), into=P(), back=P()),
    "model": Layout(batch=P(), into=P(None, "model"), back=P("model")),
    "hybrid": Layout(batch=P("data"), into=P(None, "model"), back=P("model")),
    "fsdp": Layout(batch=P("data"), into=P("data"), back=P("data"), gather=True),
    "full": Layout(batch=P(("data", "model")), into=P("data", "model"), back=P("model", "data"), gather=True),
    # Not advised: the heads' results are spread by features, and each product collects its input.
    "swapped": Layout(batch=P("data"), into=P("model"), back=P(None, "model")),
}


def train_step(layout: Layout, heads: int, mesh: Mesh | None) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step of gradient descent, parameters in and out; without a mesh nothing is said of where."""

    def place(x: Any, spec: P) -> Any:
        return x if mesh is None else jax.lax.with_sharding_constraint(x, shardings(mesh, spec))

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        def loss_of(params: Tree) -> jax.Array:
            used = place(params, P()) if layout.gather else params
            return squared_error(place(block(used, x, heads), layout.batch), y)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return descend(params, grads, RATE), loss

    return step


def stored(layout: Layout, mesh: Mesh) -> Tree:
    """Shardings of the parameters and of the activations."""
    into = dict.fromkeys(("query", "key", "value", "up"), layout.into)
    return shardings(mesh, ({**into, **dict.fromkeys(("out", "down"), layout.back)}, layout.batch))


def sharded_step(layout: Layout, heads: int, mesh: Mesh) -> Callable[..., Any]:
    """The step, compiled for a layout; parameters come back as they went in."""
    kernels, _ = stored(layout, mesh)
    jitted: Callable[..., Any] = jax.jit(
        train_step(layout, heads, mesh), donate_argnums=0, out_shardings=(kernels, shardings(mesh, P()))
    )
    return jitted


def alternative(strategy: str, mesh: Mesh, size: Size, args: tuple[Any, ...]) -> Alternative:
    """The same step by another strategy, or on another mesh."""
    kernels, tokens = stored(LAYOUTS[strategy], mesh)
    step = sharded_step(LAYOUTS[strategy], size.heads, mesh)
    return Alternative(function=step, args=shapes(args, (kernels, tokens, tokens)))


def matmul_flops(size: Size) -> int:
    """Forward once, backward twice, but no gradient of what the first three products are given."""
    tokens = size.batch * size.time
    square, attending = 2 * tokens * size.width**2, 2 * tokens * size.time * size.width
    return (3 * 4 - 3) * square + 3 * 2 * attending + 3 * 2 * (2 * tokens * size.width * size.hidden)


def make_args(size: Size) -> tuple[Any, ...]:
    """Draw parameters, activations and targets; NumPy arrays."""
    draw = drawing()
    shape = (size.batch, size.time, size.width)
    return block_params(draw, size.width, size.hidden), draw(shape), draw(shape)


SWEEP = (
    ("none", "4"),
    ("batch", "8"),
    ("model", "1x8"),
    ("hybrid", "2x2"),
    ("hybrid", "4x2"),
    ("hybrid", "2x4"),
    ("fsdp", "8"),
    ("full", "2x4"),
)


@on_meshes(
    CASES,
    "pjit-transformer-layer-train-step-{strategy}-on-{mesh}-vs-gathered",
    tuple({"strategy": strategy, "mesh": mesh} for strategy, mesh in SWEEP),
    SIZES,
)
def build(size: Size, strategy: str, mesh: str) -> Computation:
    """The step by a strategy, against collecting everything."""
    devices, layout = mesh_of(mesh), LAYOUTS[strategy]
    kernels, tokens = stored(layout, devices)
    args = make_args(size)
    against = AGAINST.get(strategy)
    return Computation(
        subject=sharded_step(layout, size.heads, devices),
        reference=gathered(train_step(layout, size.heads, None), devices),
        args=jax.device_put(args, (kernels, tokens, tokens)),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        analytic_flops=matmul_flops(size),
        alternatives={against: alternative(against, devices, size, args)} if against else {},
        claims=claims(strategy, mesh),
    )


def claims(strategy: str, mesh: str) -> tuple[Claim, ...]:
    """What each strategy must give, on any hardware."""
    count = devices_of(mesh)
    shared = claim(f"xla_flops <= {1.5 / count} * reference", "the devices share the work")
    each: dict[str, tuple[Claim, ...]] = {
        "none": (
            claim("collectives == 0", "what everybody has and does needs no communication"),
            claim(f"xla_flops >= {0.7 * count} * alternatives", "but each device does the work of all"),
        ),
        "batch": (
            shared,
            claim("collective_bytes <= 1.01 * output_bytes", "gradients and loss are summed once"),
        ),
        "model": (
            shared,
            claim("peak_bytes <= 0.6 * reference", "a device holds its heads and hidden units"),
            claim("collective_bytes <= 0.7 * alternatives", "scores and hidden units stay where they are"),
        ),
        "hybrid": (
            shared,
            claim("peak_bytes <= 0.7 * reference", "a device holds its heads and hidden units of its sequences"),
            claim("collective_bytes <= 0.9 * reference", "its own gradients, and few activations"),
            claim("collective_bytes <= 0.9 * alternatives", "scores and hidden units stay where they are"),
        ),
        "fsdp": (
            shared,
            claim("argument_bytes <= 0.3 * alternatives", "each parameter is stored once"),
            claim("peak_bytes <= 0.9 * alternatives", "and what is gathered for use does not undo that"),
            claim("collective_bytes <= 3.1 * alternatives", "gathered for each pass, gradients summed once"),
        ),
        "full": (
            shared,
            claim("argument_bytes <= 0.3 * alternatives", "each parameter is stored once"),
            claim("peak_bytes <= 0.9 * alternatives", "and what is gathered for use does not undo that"),
            claim("collective_bytes <= 3.6 * alternatives", "gathered by one axis, then by the other"),
        ),
    }
    return (*TRAINED, *each[strategy])
