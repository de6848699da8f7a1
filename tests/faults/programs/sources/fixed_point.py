"""A fixed point by while_loop: iterate until the change is small."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

SIZE = 32


def solve(matrix, start):
    """Iterate x = tanh(A x) + b until it stands still."""
    shrunk = matrix / jnp.linalg.norm(matrix)

    def moving(carry):
        _, change, count = carry
        return (change > 1e-4) & (count < 50)

    def advance(carry):
        x, _, count = carry
        following = jnp.tanh(shrunk @ x) + start
        return following, jnp.max(jnp.abs(following - x)), count + 1

    found, _, count = jax.lax.while_loop(moving, advance, (start, jnp.float32(1.0), 0))
    return found, count


def build():
    """Make the solver and its arguments."""
    random = np.random.default_rng(0)
    matrix = random.normal(size=(SIZE, SIZE)).astype(np.float32)
    start = random.normal(size=(SIZE, SIZE)).astype(np.float32)
    return Computation(subject=jax.jit(solve), args=(matrix, start))
