"""A small model that is called with a module, which holds no arrays."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

jitted = jax.jit


@jitted
def forward(model, x):
    """Ask the model."""
    return model(x)


def step(model, x):
    """One request."""
    return forward(model, x)


def build():
    """Make the step, plain Python around a jitted function, and its arguments."""
    return Computation(subject=step, args=(eqx.nn.Identity(), jnp.zeros((1, 1))), eager=True)
