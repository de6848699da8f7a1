"""Attention with grouped queries: four heads of queries share each head of keys and values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

BATCH, LENGTH, HEADS, GROUPS, DIM = 2, 64, 8, 2, 16


def attend(query, key, value):
    """Mix the values by the softmax of the scaled products, looking back only."""
    batch, length, heads, dim = query.shape
    query = query.reshape(batch, length, GROUPS, heads // GROUPS, dim)
    scores = jnp.einsum("bqghd,bkgd->bghqk", query, key) * dim**-0.5
    causal = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bghqk,bkgd->bqghd", weights, value)
    return mixed.reshape(batch, length, heads * dim)


def forward(params, x):
    """Project, attend, project back."""
    query = (x @ params["query"]).reshape(BATCH, LENGTH, HEADS, DIM)
    key = (x @ params["key"]).reshape(BATCH, LENGTH, GROUPS, DIM)
    value = (x @ params["value"]).reshape(BATCH, LENGTH, GROUPS, DIM)
    mixed = attend(query, key, value)
    return mixed @ params["out"]


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    width = HEADS * DIM
    params = {
        "query": random.normal(0, 0.1, (width, width)).astype(np.float32),
        "key": random.normal(0, 0.1, (width, GROUPS * DIM)).astype(np.float32),
        "value": random.normal(0, 0.1, (width, GROUPS * DIM)).astype(np.float32),
        "out": random.normal(0, 0.1, (width, width)).astype(np.float32),
    }
    x = random.normal(size=(BATCH, LENGTH, width)).astype(np.float32)
    return Computation(subject=jax.jit(forward), args=(params, x))
