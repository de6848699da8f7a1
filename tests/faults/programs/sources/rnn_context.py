"""A scan whose body mixes a fixed context in; the context is projected once, before the loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

STEPS, BATCH, WIDTH = 16, 8, 32


def run(params, context, xs):
    """Give the last hidden state."""
    mixed = context @ params["context"]

    def body(hidden, x):
        hidden = jnp.tanh(hidden @ params["recurrent"] + x + mixed)
        return hidden, None

    first = jnp.zeros((BATCH, WIDTH))
    last, _ = jax.lax.scan(body, first, xs)
    return last


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "context": random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32),
        "recurrent": random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32),
    }
    context = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    xs = random.normal(size=(STEPS, BATCH, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(run), args=(params, context, xs))
