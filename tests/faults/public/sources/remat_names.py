"""Blocks in a scan whose remat keeps what is called by name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxgate.model.computation import Computation

LAYERS, BATCH, WIDTH = 12, 32, 64
KEPT = jax.checkpoint_policies.save_only_these_names("mlp")


def block(weights, x):
    """Two products, of which the second is kept, and a third."""
    hidden = checkpoint_name(jnp.tanh(x @ weights["up"]) @ weights["down"], "mlp")
    return x + jnp.sin(hidden @ weights["out"])


def loss_of(weights, x):
    """Pass all blocks."""
    step = jax.checkpoint(block, policy=KEPT)
    return jnp.sum(jax.lax.scan(lambda x, w: (step(w, x), None), x, weights)[0])


def build():
    """Make the gradient and its arguments."""
    weights = {name: jnp.full((LAYERS, WIDTH, WIDTH), 0.01, jnp.float32) for name in ("up", "down", "out")}
    return Computation(subject=jax.jit(jax.grad(loss_of)), args=(weights, jnp.ones((BATCH, WIDTH))))
