"""A recurrent network whose optimiser has arrays of the same shapes as its cell."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgate.model.computation import Computation

STEPS, BATCH, WIDTH = 16, 64, 64
OPTIMISER = optax.adamw(1e-3)


def cell(params, hidden, x):
    """Advance the hidden state by one step."""
    return jnp.tanh(x @ params["input"] + hidden @ params["recurrent"])


def loss_of(params, xs, targets):
    """Average the squared error of the last state."""
    first = jnp.zeros((BATCH, WIDTH))
    last, _ = jax.lax.scan(lambda hidden, x: (cell(params, hidden, x), None), first, xs)
    return jnp.mean((last - targets) ** 2)


def step(params, state, xs, targets):
    """Take one step of AdamW."""
    loss, grads = jax.value_and_grad(loss_of)(params, xs, targets)
    updates, state = OPTIMISER.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    params = {name: random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32) for name in ("input", "recurrent")}
    xs = random.normal(size=(STEPS, BATCH, WIDTH)).astype(np.float32)
    targets = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return Computation(
        subject=jax.jit(step),
        args=(params, OPTIMISER.init(params), xs, targets),
        next_args=lambda result, args: (*result[:2], *args[2:]),
    )
