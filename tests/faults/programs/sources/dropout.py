"""Blocks with dropout and remat, scanned: the gradient of a loss; one mask serves all blocks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from jaxgate.model.computation import Computation

LAYERS, BATCH, WIDTH = 8, 32, 64
KEPT = jax.checkpoint_policies.save_only_these_names("hidden")
SHARE = 0.9


def mask_of(key):
    """Draw which units stay."""
    return jax.random.bernoulli(key, SHARE, (BATCH, WIDTH))


def block(x, weights, mask):
    """Widen, bend, drop, add."""
    hidden = checkpoint_name(jnp.tanh(x @ weights["up"]) @ weights["down"], "hidden")
    return x + jnp.where(mask, jnp.sin(hidden @ weights["out"]), 0)


def loss_of(weights, x, key):
    """Run all blocks, keeping what is called by name."""
    step = jax.checkpoint(block, policy=KEPT)
    mask = mask_of(key)
    return jnp.sum(jax.lax.scan(lambda x, w: (step(x, w, mask), None), x, weights)[0])


def build():
    """Make the gradient and its arguments."""
    random = np.random.default_rng(0)
    shape = (LAYERS, WIDTH, WIDTH)
    weights = {name: random.normal(0, 0.1, shape).astype(np.float32) for name in ("up", "down", "out")}
    x = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(jax.grad(loss_of)), args=(weights, x, jax.random.key(0)))
