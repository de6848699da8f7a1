"""A scan that trains some weights in every second step, and keeps them as they are in the others."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation

STEPS, WIDTH = 50, 64


def loss_of(weights, x):
    """Pass one example through three layers."""
    return jnp.sum(jnp.tanh(x @ weights["up"]) @ weights["middle"] @ weights["down"])


def trained(weights, x):
    """Take one step of gradient descent."""
    grads = jax.grad(loss_of)(weights, x)
    return jax.tree.map(lambda w, g: w - 1e-6 * g, weights, grads)


def step(carry, x):
    """Train, or not."""
    weights, count = carry
    now = count % 2 == 0
    weights = jax.tree.map(lambda new, old: jnp.where(now, new, old), trained(weights, x), weights)
    return (weights, count + 1), None


def train(weights, xs):
    """Take all steps."""
    return jax.lax.scan(step, (weights, 0), xs)[0]


def build():
    """Make the loop and its arguments."""
    weights = {name: jnp.ones((WIDTH, WIDTH)) for name in ("up", "middle", "down")}
    return Computation(subject=jax.jit(train), args=(weights, jnp.ones((STEPS, WIDTH))))
