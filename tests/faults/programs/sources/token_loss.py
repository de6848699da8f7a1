"""A language model's head: rows of a table by token, masked cross entropy in chunks, its gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

TOKENS, VOCABULARY, WIDTH, CHUNKS = 64, 256, 32, 4


def chunk_loss(head, hidden, targets, mask):
    """Sum the masked cross entropy of one chunk of tokens."""
    scores = jax.nn.log_softmax(hidden @ head)
    chosen = jnp.take_along_axis(scores, targets[:, None], axis=1)[:, 0]
    return -jnp.sum(jnp.where(mask, chosen, 0.0))


def loss_of(params, tokens, targets, mask):
    """Average over the tokens that count, one chunk at a time."""
    hidden = jnp.tanh(params["table"][tokens])
    parts = (hidden.reshape(CHUNKS, -1, WIDTH), targets.reshape(CHUNKS, -1), mask.reshape(CHUNKS, -1))
    one = jax.checkpoint(lambda part: chunk_loss(params["head"], *part))
    total = jnp.sum(jax.lax.map(one, parts))
    return total / jnp.sum(mask)


def grads_of(params, tokens, targets, mask):
    """Give the loss and its gradient."""
    loss, grads = jax.value_and_grad(loss_of)(params, tokens, targets, mask)
    return grads, loss


def build():
    """Make the gradient and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "table": random.normal(0, 0.1, (VOCABULARY, WIDTH)).astype(np.float32),
        "head": random.normal(0, 0.1, (WIDTH, VOCABULARY)).astype(np.float32),
    }
    tokens = random.integers(0, VOCABULARY, TOKENS).astype(np.int32)
    targets = random.integers(0, VOCABULARY, TOKENS).astype(np.int32)
    mask = np.arange(TOKENS) % 7 != 0
    return Computation(subject=jax.jit(grads_of), args=(params, tokens, targets, mask))
