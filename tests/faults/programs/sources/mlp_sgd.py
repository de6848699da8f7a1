"""A multi-layer perceptron trained by SGD with momentum and a loss scale; the whole state is donated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

BATCH, WIDTH, LAYERS = 32, 64, 3
RATE, DECAY, GROWTH = 0.05, 0.9, 1.001


def predict(params, x):
    """Give one vector per sample."""
    for layer in params:
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return x


def loss_of(params, x, y):
    """Average the squared error."""
    error = predict(params, x) - y
    return jnp.mean(error**2)


def step(state, x, y, count):
    """Take one step, state in and out."""
    loss, grads = jax.value_and_grad(loss_of)(state["params"], x, y)
    rate = RATE / (1.0 + 0.01 * count)
    velocity = jax.tree.map(lambda v, g: DECAY * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - rate * v, state["params"], velocity)
    scale = jnp.minimum(state["scale"] * GROWTH, 16.0)
    return {"params": params, "velocity": velocity, "scale": scale}, loss


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    layers = [
        {
            "kernel": random.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32),
            "bias": np.zeros(WIDTH, np.float32),
        }
        for _ in range(LAYERS)
    ]
    params = jax.device_put(layers)
    velocity = jax.tree.map(jnp.zeros_like, params)
    x, y = jax.device_put(random.normal(size=(2, BATCH, WIDTH)).astype(np.float32))
    state = {"params": params, "velocity": velocity, "scale": jnp.float32(1.0)}
    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        args=(state, x, y, jnp.int32(0)),
        next_args=lambda result, args: (result[0], args[1], args[2], args[3] + 1),
    )
