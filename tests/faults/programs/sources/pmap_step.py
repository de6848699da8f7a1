"""A data-parallel step by pmap over 8 devices; gradients are averaged over the axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model.computation import Computation

DEVICES, BATCH, WIDTH = 8, 4, 32
RATE = 0.05


def loss_of(params, x, y):
    """Average the squared error."""
    return jnp.mean((jnp.tanh(x @ params) - y) ** 2)


def step(params, x, y):
    """Take one step with the gradients of all devices."""
    grads = jax.grad(loss_of)(params, x, y)
    grads = jax.lax.pmean(grads, "data")
    return params - RATE * grads


def whole_step(params, x, y):
    """Take the same step on one device, the result repeated."""
    grads = jax.grad(loss_of)(params[0], x.reshape(-1, WIDTH), y.reshape(-1, WIDTH))
    return jnp.broadcast_to(params[0] - RATE * grads, params.shape)


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    kernel = random.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32)
    x, y = random.normal(size=(2, DEVICES, BATCH, WIDTH)).astype(np.float32)
    spread = NamedSharding(Mesh(np.array(jax.devices()[:DEVICES]), ("data",)), P("data"))
    params, x, y = jax.device_put((np.stack([kernel] * DEVICES), x, y), spread)
    return Computation(
        subject=jax.pmap(step, axis_name="data"),
        reference=whole_step,
        args=(params, x, y),
        next_args=lambda result, args: (result, *args[1:]),
    )
