"""A layer of experts: each token goes through one of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

EXPERTS, TOKENS, WIDTH = 8, 64, 32


def through(tokens, weights, sizes):
    """Multiply the tokens of each expert, which stand together, by its weights."""
    return jax.lax.ragged_dot(tokens, weights, sizes)


def build():
    """Make the layer and its arguments."""
    random = np.random.default_rng(0)
    tokens = jax.device_put(random.normal(size=(TOKENS, WIDTH)).astype(np.float32))
    weights = jax.device_put(random.normal(0, 0.1, (EXPERTS, WIDTH, WIDTH)).astype(np.float32))
    sizes = jnp.full((EXPERTS,), TOKENS // EXPERTS, jnp.int32)
    return Computation(subject=jax.jit(through), args=(tokens, weights, sizes))
