"""A plain Python loop around a jitted step, as a script has it; only the last loss is read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

STEPS, BATCH, WIDTH = 4, 16, 32
RATE = 0.05


@jax.jit
def step(params, x, y):
    """Take one step of SGD."""
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p) - y) ** 2))(params)
    return params - RATE * grads, loss


def train(params, x, y):
    """Take some steps."""
    losses = []
    for _ in range(STEPS):
        params, loss = step(params, x, y)
        losses.append(loss)
    return params, losses[-1]


def build():
    """Make the loop and its arguments."""
    random = np.random.default_rng(0)
    params = random.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32)
    x, y = random.normal(size=(2, BATCH, WIDTH)).astype(np.float32)
    return Computation(subject=train, args=(params, x, y), eager=True)
