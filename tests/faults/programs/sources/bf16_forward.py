"""The forward pass of a network in bfloat16."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

BATCH, WIDTH = 64, 64


def forward(params, x):
    """Run three layers, halving after the first."""
    hidden = jax.nn.relu(x @ params["first"])
    hidden = hidden * 0.5
    hidden = jax.nn.relu(hidden @ params["second"])
    return hidden @ params["third"]


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    params = {
        name: jnp.asarray(random.normal(0, 0.1, (WIDTH, WIDTH)), jnp.bfloat16) for name in ("first", "second", "third")
    }
    x = jnp.asarray(random.normal(size=(BATCH, WIDTH)), jnp.bfloat16)
    return Computation(subject=jax.jit(forward), args=(params, x))
