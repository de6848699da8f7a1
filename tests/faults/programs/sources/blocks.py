"""A stack of residual blocks, scanned over its layers and rematerialised: the gradient of a loss."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

LAYERS, BATCH, WIDTH, HIDDEN = 6, 64, 32, 128


def block(x, layer):
    """Widen, bend, narrow, add."""
    hidden = jax.nn.gelu(x @ layer["up"])
    return x + hidden @ layer["down"]


def forward(params, x):
    """Run all layers, keeping only what stands between them."""
    body = jax.checkpoint(block)
    last, _ = jax.lax.scan(lambda x, layer: (body(x, layer), None), x, params)
    return last


def loss_of(params, x):
    """Average the square of the result."""
    last = forward(params, x)
    return jnp.mean(last**2)


def grads_of(params, x):
    """Give the loss and its gradient."""
    return jax.value_and_grad(loss_of)(params, x)


def build():
    """Make the gradient and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "up": random.normal(0, 0.1, (LAYERS, WIDTH, HIDDEN)).astype(np.float32),
        "down": random.normal(0, 0.1, (LAYERS, HIDDEN, WIDTH)).astype(np.float32),
    }
    x = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(grads_of), args=(params, x))
