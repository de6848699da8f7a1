"""Gradients of each example alone, clipped and summed, by vmap over the batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

BATCH, FEATURES, HIDDEN = 16, 16, 32
CLIP = 1.0


def loss_of(params, x, y):
    """Give the squared error of one example."""
    hidden = jnp.tanh(x @ params["first"])
    return jnp.sum((hidden @ params["second"] - y) ** 2)


def clipped(params, x, y):
    """Give the gradient of one example, no longer than CLIP."""
    grads = jax.grad(loss_of)(params, x, y)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
    factor = jnp.minimum(1.0, CLIP / norm)
    return jax.tree.map(lambda g: factor * g, grads)


def summed(params, xs, ys):
    """Sum the clipped gradients of a batch."""
    grads = jax.vmap(clipped, in_axes=(None, 0, 0))(params, xs, ys)
    return jax.tree.map(lambda g: jnp.sum(g, axis=0), grads)


def build():
    """Make the summed gradient and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "first": random.normal(0, 0.2, (FEATURES, HIDDEN)).astype(np.float32),
        "second": random.normal(0, 0.2, (HIDDEN, FEATURES)).astype(np.float32),
    }
    xs = random.normal(size=(BATCH, FEATURES)).astype(np.float32)
    ys = random.normal(size=(BATCH, FEATURES)).astype(np.float32)
    return Computation(subject=jax.jit(summed), args=(params, xs, ys))
