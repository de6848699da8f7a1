"""A step that is compiled ahead of the first batch, to look at its memory, and then called."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


def loss_of(weights, batch):
    """A product and a sum over the batch."""
    return jnp.mean(jnp.tanh(batch @ weights) ** 2)


def build():
    """Make the step, which knows what its batch will look like, and its arguments."""
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.NamedSharding(mesh, jax.P("data"))
    step = jax.jit(jax.value_and_grad(loss_of))

    def start(weights, batch):
        described = jax.ShapeDtypeStruct((16, 32), jnp.float32, sharding=spread)
        step.lower(weights, described).compile()
        return step(weights, batch)

    weights = jax.device_put(jnp.ones((32, 32)), jax.NamedSharding(mesh, jax.P()))
    return Computation(subject=start, args=(weights, jax.device_put(jnp.ones((16, 32)), spread)), eager=True)
