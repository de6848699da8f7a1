"""A model as a pytree that counts its own steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


@partial(jax.tree_util.register_dataclass, data_fields=["weight", "steps"], meta_fields=[])
@dataclass(frozen=True)
class Model:
    """A layer, and how often it was trained."""

    weight: Any
    steps: Any


@jax.jit
def step(model, x):
    """Take one step."""
    gradient = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(model.weight)
    return replace(model, weight=model.weight - 0.1 * gradient)


def next_step(result, args):
    """Count, and go on with the same batch."""
    return replace(result, steps=result.steps + 1), args[1]


def build():
    """Make the step and its arguments."""
    return Computation(
        subject=step, args=(Model(jnp.ones((8, 4)), jnp.int32(0)), jnp.ones((16, 8))), next_args=next_step
    )
