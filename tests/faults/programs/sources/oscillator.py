"""An oscillator without a matrix in it, integrated over many steps: each is recomputed for the gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

STEPS, BATCH, WIDTH = 12, 64, 32


def advance(state, force):
    """Take one step."""
    swing = jnp.sin(state * force)
    damped = jnp.exp(-swing * swing)
    return jnp.tanh(state + 0.1 * damped * swing)


def energy_of(forces, state):
    """Integrate, and measure where it ends."""
    kept = jax.checkpoint_policies.nothing_saveable
    step = jax.checkpoint(advance, policy=kept, prevent_cse=False)
    last, _ = jax.lax.scan(lambda state, force: (step(state, force), None), state, forces)
    return jnp.mean(last**2)


def build():
    """Make the gradient and its arguments."""
    random = np.random.default_rng(0)
    forces = random.normal(size=STEPS).astype(np.float32)
    state = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(jax.grad(energy_of)), args=(forces, state))
