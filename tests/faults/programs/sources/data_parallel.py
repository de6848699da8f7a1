"""A data-parallel step by shard_map: micro-batches on each of 8 devices, one psum of the gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model.computation import Computation

DEVICES, BATCH, MICRO, WIDTH = 8, 64, 4, 32
RATE = 0.05


def loss_of(params, x, y):
    """Average the squared error."""
    hidden = jnp.tanh(x @ params["first"])
    return jnp.mean((hidden @ params["second"] - y) ** 2)


def local_grads(params, x, y):
    """Average the gradients of this device's micro-batches."""
    xs, ys = x.reshape(MICRO, -1, WIDTH), y.reshape(MICRO, -1, WIDTH)
    zeros = jax.tree.map(jnp.zeros_like, params)

    def body(total, micro):
        grads = jax.grad(loss_of)(params, *micro)
        return jax.tree.map(lambda t, g: t + g / MICRO, total, grads), None

    total, _ = jax.lax.scan(body, zeros, (xs, ys))
    return total


def sharded_step(params, x, y):
    """Take one step with the gradients of all devices."""
    grads = local_grads(params, x, y)
    grads = jax.tree.map(lambda g: jax.lax.psum(g, "data") / DEVICES, grads)
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads)


def whole_step(params, x, y):
    """Take the same step on one device."""
    grads = jax.grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads)


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("data",))
    params = {name: random.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32) for name in ("first", "second")}
    x, y = random.normal(size=(2, BATCH, WIDTH)).astype(np.float32)
    params = jax.device_put(params, NamedSharding(mesh, P()))
    x, y = jax.device_put((x, y), NamedSharding(mesh, P("data")))
    step = jax.shard_map(sharded_step, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)
    return Computation(
        subject=jax.jit(step),
        reference=whole_step,
        args=(params, x, y),
        next_args=lambda result, args: (result, *args[1:]),
    )
