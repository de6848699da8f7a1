"""A chain of operations, kept as nested lists, that is walked while it is traced."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

DEPTH = 60


def depth_of(node):
    """How many lists are in each other."""
    return 1 + max((depth_of(child) for child in node), default=0) if isinstance(node, list) else 0


def apply(node, x):
    """Multiply by each number, the inner lists last."""
    factor, *inner = node
    return apply(inner[0], x * factor) if inner else x * factor


def forward(x):
    """Apply the whole chain."""
    node = [1.5]
    for _ in range(DEPTH):
        node = [1.01, node]
    return apply(node, x) / depth_of(node)


def build():
    """Make the forward pass and its argument."""
    return Computation(subject=jax.jit(forward), args=(jnp.ones((4, 8)),))
