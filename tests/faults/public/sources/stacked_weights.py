"""Layers in a scan with remat, whose weights are given to each turn."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

LAYERS, BATCH, WIDTH = 12, 32, 128


def layer(x, weights):
    """Pass one layer."""
    return jnp.tanh(x @ weights), None


def forward(weights, x):
    """Pass all layers."""
    x, state = jax.lax.scan(jax.checkpoint(layer), x, weights)
    return x, state


def build():
    """Make the forward pass and its arguments."""
    weights = jnp.full((LAYERS, WIDTH, WIDTH), 0.01, jnp.float32)
    return Computation(subject=jax.jit(forward), args=(weights, jnp.ones((BATCH, WIDTH))))
