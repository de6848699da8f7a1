"""A plain forward pass with its predicted classes; the batch is processed in full."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Batch, Computation

BATCH, FEATURES, HIDDEN, CLASSES = 60, 32, 64, 16


def scores_of(params, x):
    """Score the classes of each sample."""
    hidden = jnp.tanh(x @ params["first"] + params["bias"])
    return hidden @ params["second"]


def classify(params, x):
    """Give the best class of each sample and its probability."""
    scores = scores_of(params, x)
    best = jnp.argmax(scores, axis=-1)
    sure = jnp.max(jax.nn.softmax(scores), axis=-1)
    return best, sure


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "first": random.normal(0, 0.2, (FEATURES, HIDDEN)).astype(np.float32),
        "bias": np.zeros(HIDDEN, np.float32),
        "second": random.normal(0, 0.2, (HIDDEN, CLASSES)).astype(np.float32),
    }
    x = random.normal(size=(BATCH, FEATURES)).astype(np.float32)
    return Computation(subject=jax.jit(classify), args=(params, x), batch=Batch(argument=1, size=BATCH))
