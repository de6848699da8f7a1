"""Two layers whose results are spread over a mesh."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

AUTO = (jax.sharding.AxisType.Auto,) * 2


def build():
    """Make the layers, their mesh and their arguments."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=AUTO)
    spread = jax.NamedSharding(mesh, jax.P("x", "y"))

    def forward(weights, x):
        x = jax.lax.with_sharding_constraint(jnp.tanh(x @ weights), spread)
        return jax.lax.with_sharding_constraint(jnp.sin(x), spread) * 2

    weights = jax.device_put(jnp.ones((64, 64)), jax.NamedSharding(mesh, jax.P(None, "y")))
    x = jax.device_put(jnp.ones((64, 64)), jax.NamedSharding(mesh, jax.P("x", None)))
    return Computation(subject=jax.jit(forward), args=(weights, x))
