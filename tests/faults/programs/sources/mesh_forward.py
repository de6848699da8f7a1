"""A forward pass whose batch comes unplaced from the host and is spread over 8 devices inside."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model.computation import Computation

BATCH, WIDTH = 128, 64


def make_forward(mesh):
    """Give the forward pass, spread over the mesh."""
    spread = NamedSharding(mesh, P("data"))

    def forward(params, x):
        x = jax.lax.with_sharding_constraint(x, spread)
        hidden = jax.nn.relu(x @ params["first"])
        return hidden @ params["second"]

    return forward


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    mesh = Mesh(np.array(jax.devices()[:8]), ("data",))
    params = {name: random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32) for name in ("first", "second")}
    params = jax.device_put(params, NamedSharding(mesh, P()))
    x = jax.device_put(random.normal(size=(BATCH, WIDTH)).astype(np.float32), NamedSharding(mesh, P()))
    return Computation(subject=jax.jit(make_forward(mesh)), args=(params, x))
