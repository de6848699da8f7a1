"""A step of AdamW from optax; parameters and optimiser state are donated, the first moments are bfloat16."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgate.model.computation import Computation

BATCH, WIDTH = 32, 64


def predict(params, x):
    """Give one vector per sample."""
    hidden = jnp.tanh(x @ params["first"])
    return hidden @ params["second"]


def loss_of(params, x, y):
    """Average the squared error."""
    return jnp.mean((predict(params, x) - y) ** 2)


def make_step(optimiser):
    """Give one step of an optimiser."""

    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        updates, opt_state = optimiser.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, opt_state, loss

    return step


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    optimiser = optax.adamw(1e-3, mu_dtype=jnp.bfloat16)
    params = jax.device_put(
        {name: random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32) for name in ("first", "second")}
    )
    x, y = jax.device_put(random.normal(size=(2, BATCH, WIDTH)).astype(np.float32))
    return Computation(
        subject=jax.jit(make_step(optimiser), donate_argnums=(0, 1)),
        args=(params, optimiser.init(params), x, y),
        next_args=lambda result, args: (result[0], result[1], *args[2:]),
    )
