"""Tokens that take one of two ways, chosen for all of them at once, refined as often as the whole batch needs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

TOKENS, WIDTH, HIDDEN = 24, 32, 64


def expert(x, params):
    """Apply the costly way."""
    return jnp.tanh(x @ params["up"]) @ params["down"]


def routed(x, params, busy):
    """Take the costly way only where it is asked for."""
    return jax.lax.cond(busy, lambda x: expert(x, params), lambda x: x, x)


def refined(x, rounds):
    """Smooth some times."""
    return jax.lax.while_loop(lambda c: c[0] < rounds, lambda c: (c[0] + 1, 0.5 * jnp.sin(c[1])), (0, x))[1]


def forward(params, xs, gate):
    """Route each token, then refine it."""
    busy = jnp.sum(gate) > 0
    rounds = jnp.sum(gate > 0)
    return jax.vmap(lambda x: refined(routed(x, params, busy), rounds))(xs)


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "up": random.normal(0, 0.2, (WIDTH, HIDDEN)).astype(np.float32),
        "down": random.normal(0, 0.2, (HIDDEN, WIDTH)).astype(np.float32),
    }
    xs = random.normal(size=(TOKENS, WIDTH)).astype(np.float32)
    return Computation(subject=jax.jit(forward), args=(params, xs, random.normal(size=TOKENS).astype(np.float32)))
