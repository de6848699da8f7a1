"""A recurrent network over time, trained: the loss of a scan and its gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

STEPS, BATCH, FEATURES, HIDDEN = 16, 8, 16, 32
RATE = 0.05


def cell(params, hidden, x):
    """Advance the hidden state by one step."""
    return jnp.tanh(x @ params["input"] + hidden @ params["recurrent"] + params["bias"])


def run(params, xs):
    """Give the last hidden state of a sequence."""
    first = jnp.zeros((xs.shape[1], HIDDEN))
    last, _ = jax.lax.scan(lambda hidden, x: (cell(params, hidden, x), None), first, xs)
    return last


def loss_of(params, xs, targets):
    """Average the squared error of the last state."""
    last = run(params, xs)
    error = last - targets
    return jnp.mean(error**2)


def step(params, xs, targets):
    """Take one step of SGD."""
    loss, grads = jax.value_and_grad(loss_of)(params, xs, targets)
    params = jax.tree.map(lambda p, g: p - RATE * g, params, grads)
    return params, loss


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "input": random.normal(0, 0.2, (FEATURES, HIDDEN)).astype(np.float32),
        "recurrent": random.normal(0, 0.1, (HIDDEN, HIDDEN)).astype(np.float32),
        "bias": np.zeros(HIDDEN, np.float32),
    }
    xs = random.normal(size=(STEPS, BATCH, FEATURES)).astype(np.float32)
    targets = random.normal(size=(BATCH, HIDDEN)).astype(np.float32)
    return Computation(
        subject=jax.jit(step), args=(params, xs, targets), next_args=lambda result, args: (result[0], *args[1:])
    )
