"""Layers whose names are registered while they are traced."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

LAYERS, WIDTH = 300, 8


class Register:
    """Names in the order in which they came, each once."""

    def __init__(self):
        self.names, self.known = [], set()

    def add(self, name):
        """Take one more name."""
        if name not in self.known:
            self.known.add(name)
            self.names.append(name)


def forward(weights, x):
    """Pass all layers."""
    register = Register()
    for number in range(LAYERS):
        register.add(f"layer {number}")
        x = jnp.tanh(x @ weights)
    return x


def build():
    """Make the forward pass and its arguments."""
    return Computation(subject=jax.jit(forward), args=(jnp.eye(WIDTH), jnp.ones((4, WIDTH))))
