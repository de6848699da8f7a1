"""A step on a 2 by 4 mesh: the batch over one axis, the hidden units over the other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model.computation import Computation

BATCH, WIDTH, HIDDEN = 32, 64, 128
RATE = 0.05


def make_step(mesh):
    """Give one step of SGD, laid out on the mesh."""

    def forward(params, x):
        hidden = jnp.tanh(x @ params["up"])
        hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(mesh, P("data", "model")))
        return hidden @ params["down"]

    def loss_of(params, x, y):
        error = forward(params, x) - y
        return jnp.mean(error**2)

    def step(params, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        params = jax.tree.map(lambda p, g: p - RATE * g, params, grads)
        return params, loss

    return step


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("data", "model"))
    layout = {"up": NamedSharding(mesh, P(None, "model")), "down": NamedSharding(mesh, P("model", None))}
    params = {
        "up": random.normal(0, 0.1, (WIDTH, HIDDEN)).astype(np.float32),
        "down": random.normal(0, 0.1, (HIDDEN, WIDTH)).astype(np.float32),
    }
    x, y = random.normal(size=(2, BATCH, WIDTH)).astype(np.float32)
    return Computation(
        subject=jax.jit(make_step(mesh), donate_argnums=0, out_shardings=(layout, None)),
        args=(jax.device_put(params, layout), *jax.device_put((x, y), NamedSharding(mesh, P("data", None)))),
        next_args=lambda result, args: (result[0], *args[1:]),
    )
