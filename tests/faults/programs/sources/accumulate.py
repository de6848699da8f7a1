"""Gradients accumulated over micro-batches by a scan: memory of one micro-batch at a time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

MICRO, BATCH, WIDTH, HIDDEN = 8, 128, 16, 128


def loss_of(params, x, y):
    """Average the squared error."""
    hidden = jax.nn.gelu(x @ params["up"])
    return jnp.mean((hidden @ params["down"] - y) ** 2)


def grads_of(params, x, y):
    """Average the gradients of the micro-batches."""
    xs = x.reshape(MICRO, -1, WIDTH)
    ys = y.reshape(MICRO, -1, WIDTH)

    def body(total, micro):
        grads = jax.grad(loss_of)(params, *micro)
        return jax.tree.map(jnp.add, total, grads), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    total, _ = jax.lax.scan(body, zeros, (xs, ys))
    return jax.tree.map(lambda g: g / MICRO, total)


def build():
    """Make the gradient and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "up": random.normal(0, 0.1, (WIDTH, HIDDEN)).astype(np.float32),
        "down": random.normal(0, 0.1, (HIDDEN, WIDTH)).astype(np.float32),
    }
    x = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    y = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(grads_of), args=(params, x, y))
