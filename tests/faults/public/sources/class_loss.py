"""Cross-entropy of many classes, with labels as whole numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

TOKENS, CLASSES, WIDTH = 128, 1024, 32


def loss_of(weights, hidden, labels):
    """Average the negative logarithm of the probability of each label."""
    logits = hidden @ weights
    right = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - right)


def build():
    """Make the gradient and its arguments."""
    random = np.random.default_rng(0)
    weights = jax.device_put(random.normal(0, 0.1, (WIDTH, CLASSES)).astype(np.float32))
    hidden = jax.device_put(random.normal(size=(TOKENS, WIDTH)).astype(np.float32))
    labels = jax.device_put(random.integers(0, CLASSES, TOKENS).astype(np.int32))
    return Computation(subject=jax.jit(jax.value_and_grad(loss_of)), args=(weights, hidden, labels))
