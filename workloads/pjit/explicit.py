"""Explicit axes: the layout is part of an array's type, and every change of it stands in the program.

With automatic axes the compiler chooses; with explicit ones a product that would have to be added up over devices is
refused until the program says where its result goes (``out_sharding=``, ``jax.sharding.reshard``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, squared_error
from workloads.pjit import mlp
from workloads.pjit.meshes import MESHES, TRAINED, devices_of, mesh_of, on_meshes, shapes

CASES = Family("pjit")

LAYOUTS = {name: mlp.LAYOUTS[name] for name in ("hybrid", "fsdp")}


def explicit_mesh(name: str) -> Mesh:
    """The mesh of that name, all of its axes explicit."""
    axes = MESHES[name]
    devices = jax.local_devices()[: devices_of(name)]
    types = (AxisType.Explicit,) * len(axes)
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=types, devices=devices)


def network(params: Tree, x: jax.Array, layout: mlp.Layout, mesh: Mesh) -> jax.Array:
    """Pairs of layers with residuals, as in ``mlp``, each product saying where its result goes."""

    def resting(spec: P) -> NamedSharding:
        return NamedSharding(mesh, spec)

    for pair in params:
        used = jax.sharding.reshard(pair, resting(P())) if layout.gather else pair
        hidden = jnp.tanh(jnp.einsum("bw,wh->bh", x, used["up"], out_sharding=resting(layout.hidden)))
        x = x + jnp.einsum("bh,hw->bw", hidden, used["down"], out_sharding=resting(layout.batch))
    return x


def train_step(layout: mlp.Layout, mesh: Mesh) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step of gradient descent; nothing is said of its results: their layout follows."""

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        def loss_of(params: Tree) -> jax.Array:
            return squared_error(network(params, x, layout, mesh), y)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return descend(params, grads, mlp.RATE), loss

    return step


SWEEP = (("hybrid", "4x2"), ("fsdp", "8"))


@on_meshes(
    CASES,
    "pjit-mlp-train-step-{strategy}-on-{mesh}-with-explicit-axes-vs-gathered",
    tuple({"strategy": strategy, "mesh": mesh} for strategy, mesh in SWEEP),
    mlp.SIZES,
)
def build(size: Extent, strategy: str, mesh: str) -> Computation:
    """Explicit axes, against collecting everything; the alternative is the same layout by automatic axes."""
    devices, layout, draw = explicit_mesh(mesh), LAYOUTS[strategy], drawing()
    numbers = (mlp.make_params(draw, size), draw((size.batch, size.width)), draw((size.batch, size.width)))
    kernels, samples = mlp.stored(layout, devices, size.pairs)
    everywhere = train_step(mlp.LAYOUTS["none"], devices)

    def gathered(*args: Any) -> Any:
        return everywhere(*jax.sharding.reshard(args, NamedSharding(devices, P())))

    automatic = mesh_of(mesh)
    free_kernels, free_samples = mlp.stored(layout, automatic, size.pairs)
    return Computation(
        subject=jax.jit(train_step(layout, devices), donate_argnums=0),
        reference=jax.jit(gathered),
        args=jax.device_put(numbers, (kernels, samples, samples)),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        alternatives={
            "automatic": Alternative(
                function=mlp.sharded_step(layout, automatic, size.pairs),
                args=shapes(numbers, (free_kernels, free_samples, free_samples)),
            )
        },
        claims=[
            *TRAINED,
            claim(f"xla_flops <= {1.3 / devices_of(mesh)} * reference", "the devices share the work"),
            claim("collective_bytes <= 1.05 * alternatives", "what is written moves no more than what is inserted"),
            claim("peak_bytes <= 1.1 * alternatives", "nor does it hold more"),
            claim("argument_bytes == alternatives", "one layout, spelled in two ways"),
        ],
    )
