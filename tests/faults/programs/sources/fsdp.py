"""Fully sharded parameters and optimiser state: each of 8 devices keeps an eighth, gathered layer by layer."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model.computation import Computation

BATCH, WIDTH, LAYERS = 64, 64, 3
RATE, DECAY = 0.05, 0.9


def loss_of(params, x, y):
    """Average the squared error."""
    for kernel in params:
        x = jnp.tanh(x @ kernel)
    return jnp.mean((x - y) ** 2)


def step(params, velocity, x, y):
    """Take one step of SGD with momentum."""
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    velocity = jax.tree.map(lambda v, g: DECAY * v + g, velocity, grads)
    params = jax.tree.map(lambda p, v: p - RATE * v, params, velocity)
    return params, velocity, loss


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    mesh = Mesh(np.array(jax.devices()[:8]), ("data",))
    rows = NamedSharding(mesh, P("data"))
    kernels = [random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)]
    params = jax.device_put(kernels, rows)
    velocity = jax.device_put([np.zeros_like(kernel) for kernel in kernels], rows)
    x, y = jax.device_put(tuple(random.normal(size=(2, BATCH, WIDTH)).astype(np.float32)), rows)
    return Computation(
        subject=jax.jit(step, donate_argnums=(0, 1), out_shardings=(rows, rows, None)),
        args=(params, velocity, x, y),
        next_args=lambda result, args: (result[0], result[1], *args[2:]),
    )
