"""Donation: a training step that reuses the buffers of its old parameters and optimiser state.

Without ``donate_argnums`` every step holds the old and the new state at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgate.model import Batch, Case, Claim, Computation, at_least, at_most, cases, equal

BATCH, WIDTH, LAYERS = 64, 256, 3

Params = list[dict[str, jax.Array]]
State = tuple[Params, optax.OptState]

OPTIMISERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": lambda: optax.sgd(1e-2),
    "adamw": lambda: optax.adamw(1e-3),
}


def predict(params: Params, x: jax.Array) -> jax.Array:
    """A multi-layer perceptron: x [batch, width] to [batch, width]."""
    for layer in params:
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return x


def train_step(optimiser: optax.GradientTransformation) -> Callable[..., tuple[State, jax.Array]]:
    """One step of an optimiser, parameters and optimiser state in and out."""

    def step(state: State, x: jax.Array, y: jax.Array) -> tuple[State, jax.Array]:
        params, opt_state = state
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(params)
        updates, opt_state = optimiser.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    return step


def make_params(draw: Callable[..., Any]) -> Params:
    """Draw the layers."""
    scale = np.float32(WIDTH**-0.5)
    layers = [{"kernel": scale * draw((WIDTH, WIDTH)), "bias": np.zeros(WIDTH, np.float32)} for _ in range(LAYERS)]
    params: Params = jax.device_put(layers)
    return params


def optimiser_step(optimiser: str) -> Computation:
    """The step with its state donated, against the same step that copies."""
    transformation = OPTIMISERS[optimiser]()
    draw = partial(np.random.default_rng(0).standard_normal, dtype=np.float32)
    params = make_params(draw)
    x, y = jax.device_put((draw((BATCH, WIDTH)), draw((BATCH, WIDTH))))
    step = train_step(transformation)
    # Per layer: forward, gradient of the kernel, gradient of the input (which the first layer does not need).
    multiplications = 3 * LAYERS - 1
    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        reference=jax.jit(step),
        args=((params, transformation.init(params)), x, y),
        next_args=lambda result, args: (result[0], *args[1:]),
        batch=Batch(argument=1, size=BATCH),
        analytic_flops=multiplications * 2 * BATCH * WIDTH * WIDTH,
    )


def claims(optimiser: str) -> tuple[Claim, ...]:
    """What donation must give, on any hardware."""
    del optimiser  # holds for each
    return (
        at_least(1, "donated_bytes", of="one", why="the state is donated at all"),
        equal("aliased_bytes", to="donated_bytes", why="every donated buffer is reused"),
        at_most(0.85, "peak_bytes", why="old and new state share their memory"),
        at_most(1.01, "xla_flops", why="donation adds no work"),
        equal("matmul_flops", to="analytic_flops", why="one forward, one backward pass"),
    )


CASES: tuple[Case, ...] = cases(
    "donation",
    "{optimiser}-step-donated-vs-copied",
    optimiser_step,
    tuple({"optimiser": name} for name in OPTIMISERS),
    claims,
)
