"""Two programs that JAX releases are known to treat differently: what an upgrade study looks like.

    pytest ci/test_releases.py --perf-against jax==0.10.2

They have no baselines: on its own, this file checks that they run.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

BLOCKS, WIDTH, BATCH, STEPS = 6, 256, 1024, 128


def _block(weights: tuple[jax.Array, jax.Array], x: jax.Array) -> jax.Array:
    up, down = weights
    return x + jax.nn.gelu(x @ up) @ down


def _loss(blocks: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    for weights in blocks:
        x = jax.checkpoint(_block)(weights, x)
    return jnp.mean(x**2)


def _unrolled(weights: jax.Array, xs: jax.Array) -> jax.Array:
    hidden = jnp.zeros(xs.shape[1:])
    for step in range(STEPS):
        hidden = jnp.tanh(hidden @ weights + xs[step])
    return jnp.mean(hidden**2)


def _normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape) / jnp.sqrt(shape[-1])


def test_unrolled_checkpoint_blocks(gate: Any) -> None:
    """Rematerialised blocks in a Python loop: a compiler that finds the copies equal undoes what was asked for."""
    blocks = [(_normal(2 * i, WIDTH, 4 * WIDTH), _normal(2 * i + 1, 4 * WIDTH, WIDTH)) for i in range(BLOCKS)]
    gate(jax.grad(_loss), blocks, _normal(99, BATCH, WIDTH))


def test_unrolled_loop(gate: Any) -> None:
    """A Python loop over steps: one copy of the body for each, which trace, lowering and compiling all pay for."""
    gate(jax.grad(_unrolled), _normal(0, 64, 64), _normal(1, STEPS, 8, 64))
