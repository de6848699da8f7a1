"""A step whose modules are objects that are made at each call."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

forward = jax.jit(lambda weights, x: jnp.tanh(x @ weights))


class Module:
    """Part of a graph."""

    def __init__(self, owner):
        self.owner = owner


def step(weights, x):
    """Make the graph, and call the jitted function."""
    graph = Module(None)
    graph.parts = [Module(number) for number in range(30)]
    return forward(weights, x)


def build():
    """Make the step, plain Python around a jitted function, and its arguments."""
    return Computation(subject=step, args=(jnp.eye(8), jnp.ones((4, 8))), eager=True)
