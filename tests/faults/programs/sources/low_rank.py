"""A low-rank adapter: the two thin matrices are applied one after the other, under a static switch."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np

from jaxgate.model.computation import Computation

BATCH, WIDTH, RANK = 16, 128, 4


@partial(jax.jit, static_argnames="depth")
def forward(params, x, depth):
    """Apply the adapter some times."""
    for _ in range(depth):
        x = x + (x @ params["down"]) @ params["up"]
    return x


def build():
    """Make the forward pass and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "down": random.normal(0, 0.1, (WIDTH, RANK)).astype(np.float32),
        "up": random.normal(0, 0.1, (RANK, WIDTH)).astype(np.float32),
    }
    x = random.normal(size=(BATCH, WIDTH)).astype(np.float32)
    return Computation(subject=forward, args=(params, x, 2), next_args=lambda result, args: (args[0], result, args[2]))
