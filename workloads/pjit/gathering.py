"""Parameters that are spread over the devices and collected one layer at a time, forward and again backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp_layer, sizes, squared_error
from workloads.pjit.meshes import TRAINED, devices_of, gathered, mesh_of, on_meshes, shapes, shardings

CASES = Family("pjit")

RATE = 0.05


SIZES = sizes(batch=(64, 4096), width=(128, 4096), layers=12)
"""Samples, features and layers."""

STACKED = {"kernel": P(None, "data"), "bias": P()}  # [layers, width, width], [layers, width]
SAMPLES = P("data")


def train_step(mesh: Mesh | None, *, early: bool = False) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step through a loop over layers; ``early`` collects all of them before it."""

    def collected(tree: Tree) -> Tree:
        return tree if mesh is None else jax.lax.with_sharding_constraint(tree, shardings(mesh, P()))

    def step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        def body(x: jax.Array, layer: Tree) -> tuple[jax.Array, None]:
            return mlp_layer(layer if early else collected(layer), x), None

        def loss_of(params: Tree) -> jax.Array:
            found, _ = jax.lax.scan(jax.checkpoint(body), x, collected(params) if early else params)
            return squared_error(found, y)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return descend(params, grads, RATE), loss

    return step


def compiled(mesh: Mesh, *, early: bool) -> Callable[..., Any]:
    """The step; parameters come back spread as they went in."""
    out = shardings(mesh, (STACKED, P()))
    return jax.jit(train_step(mesh, early=early), donate_argnums=0, out_shardings=out)


@on_meshes(CASES, "pjit-mlp-fsdp-layer-by-layer-on-{mesh}-vs-gathered", ({"mesh": "8"},), SIZES)
def build(size: Extent, mesh: str) -> Computation:
    """Layer by layer, against the whole step on every device; the alternative collects all layers at once."""
    devices, draw = mesh_of(mesh), drawing()
    kernel = np.float32(size.width**-0.5) * draw((size.layers, size.width, size.width))
    params = {"kernel": kernel, "bias": np.zeros((size.layers, size.width), np.float32)}
    numbers = (params, draw((size.batch, size.width)), draw((size.batch, size.width)))
    layout = shardings(devices, (STACKED, SAMPLES, SAMPLES))
    return Computation(
        subject=compiled(devices, early=False),
        reference=gathered(train_step(None), devices),
        args=jax.device_put(numbers, layout),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        alternatives={"all-at-once": Alternative(function=compiled(devices, early=True), args=shapes(numbers, layout))},
        claims=[
            *TRAINED,
            claim(f"xla_flops <= {1.5 / devices_of(mesh)} * reference", "the devices share the work"),
            claim("peak_bytes <= 0.7 * alternatives", "one layer is collected at a time, not all of them"),
            claim(
                "collective_bytes <= 2.1 * alternatives", "each layer is collected twice, its gradients added up once"
            ),
        ],
    )
