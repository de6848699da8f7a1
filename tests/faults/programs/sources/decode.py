"""One step of decoding with a cache of keys and values, which is donated and updated in place."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

BATCH, LENGTH, WIDTH = 4, 32, 32


def attend(query, keys, values, position):
    """Mix the values that have been written so far."""
    scores = jnp.einsum("bd,bkd->bk", query, keys) * WIDTH**-0.5
    written = jnp.arange(keys.shape[1]) <= position
    weights = jax.nn.softmax(jnp.where(written, scores, -1e9), axis=-1)
    return jnp.einsum("bk,bkd->bd", weights, values)


def step(cache, x, params, position):
    """Write one key and one value, attend to all, give the next input."""
    key, value = x @ params["key"], x @ params["value"]
    keys = jax.lax.dynamic_update_slice(cache["keys"], key[:, None], (0, position, 0))
    values = jax.lax.dynamic_update_slice(cache["values"], value[:, None], (0, position, 0))
    mixed = attend(x @ params["query"], keys, values, position)
    return {"keys": keys, "values": values}, jnp.tanh(mixed @ params["out"])


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    params = {
        name: random.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32) for name in ("key", "out", "query", "value")
    }
    cache = {name: jnp.zeros((BATCH, LENGTH, WIDTH)) for name in ("keys", "values")}
    x = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        args=(cache, x, params, jnp.int32(0)),
        next_args=lambda result, args: (result[0], result[1], args[2], args[3] + 1),
    )
