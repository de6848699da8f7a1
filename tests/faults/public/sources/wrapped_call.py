"""A library's wrapper around a jitted function."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


@jax.jit
def double(tree):
    """Double every leaf."""
    return jax.tree.map(lambda leaf: leaf * 2, tree)


def where_from():
    """Name whoever calls."""
    return "user"


def wrapped(tree):
    """Call it, as a library does for its user."""
    where_from()
    return double(tree)


def build():
    """Make the call and its argument."""
    return Computation(subject=wrapped, args=({"a": jnp.ones(8), "b": jnp.ones(4)},), eager=True)
