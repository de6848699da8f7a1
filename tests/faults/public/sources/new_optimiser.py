"""A step that is given its optimiser as a static argument."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation


class Sgd(NamedTuple):
    """An optimiser by its numbers."""

    rate: float
    momentum: float

    def update(self, gradient: Any, velocity: Any) -> Any:
        """Give the change of the parameters, and the velocity."""
        velocity = self.momentum * velocity + gradient
        return -self.rate * velocity, velocity


def made():
    """Make the optimiser, as each epoch of a script does."""
    return Sgd(0.1, 0.9)


@partial(jax.jit, static_argnums=0)
def step(optimiser, params, velocity, x):
    """Take one step."""
    gradient = jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)
    change, velocity = optimiser.update(gradient, velocity)
    return params + change, velocity


def build():
    """Make the step and its arguments."""
    return Computation(
        subject=step,
        args=(made(), jnp.ones((8, 4)), jnp.zeros((8, 4)), jnp.ones((16, 8))),
        next_args=lambda result, args: (made(), *result, args[3]),
    )
