"""scan against loop: a recurrent network over time.

``lax.scan`` compiles its body once; a Python loop is unrolled into a program that grows with its length,
and so do tracing, lowering and compiling it. Both must compute the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model import Batch, Case, Claim, Computation, at_most, cases, equal

BATCH, FEATURES, HIDDEN = 8, 32, 64
LEARNING_RATE = 0.05
LONG = 256  # steps from which compiling the loop takes seconds, so that the ratio is beyond any noise

Params = dict[str, jax.Array]
Network = Callable[[Params, jax.Array, jax.Array], jax.Array]


def cell(params: Params, hidden: jax.Array, x: jax.Array) -> jax.Array:
    """One step of a plain recurrent network: hidden [batch, hidden], x [batch, features]."""
    return jnp.tanh(x @ params["input"] + hidden @ params["recurrent"] + params["bias"])


def scanned(params: Params, hidden: jax.Array, xs: jax.Array) -> jax.Array:
    """Run the network over xs [steps, batch, features] with one compiled body."""
    last, _ = jax.lax.scan(lambda h, x: (cell(params, h, x), None), hidden, xs)
    return last


def unrolled(params: Params, hidden: jax.Array, xs: jax.Array) -> jax.Array:
    """Run the network with a Python loop: one copy of the body for every step."""
    for step in range(xs.shape[0]):
        hidden = cell(params, hidden, xs[step])
    return hidden


def train_step(network: Network) -> Callable[..., tuple[Params, jax.Array]]:
    """One SGD step through time, parameters in and out."""

    def step(params: Params, hidden: jax.Array, xs: jax.Array, targets: jax.Array) -> tuple[Params, jax.Array]:
        def loss_of(params: Params) -> jax.Array:
            return jnp.mean((network(params, hidden, xs) - targets) ** 2)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads), loss

    return step


def make_inputs(steps: int) -> Any:
    """Draw parameters, the first hidden state, the sequence and the targets: the same on every JAX release."""
    draw = partial(np.random.default_rng(0).standard_normal, dtype=np.float32)
    params = {
        "input": 0.2 * draw((FEATURES, HIDDEN)),
        "recurrent": 0.1 * draw((HIDDEN, HIDDEN)),
        "bias": np.zeros(HIDDEN, np.float32),
    }
    return jax.device_put((params, 0.1 * draw((BATCH, HIDDEN)), draw((steps, BATCH, FEATURES)), draw((BATCH, HIDDEN))))


def matmul_flops(steps: int) -> int:
    """FLOPs of the forward pass: each step multiplies the input and the hidden state by a matrix."""
    return 2 * steps * BATCH * HIDDEN * (FEATURES + HIDDEN)


def forward(steps: int) -> Computation:
    """The forward pass; the last hidden state starts the next call."""
    params, hidden, xs, _ = make_inputs(steps)
    return Computation(
        subject=jax.jit(scanned),
        reference=jax.jit(unrolled),
        args=(params, hidden, xs),
        next_args=lambda last, args: (args[0], last, args[2]),
        batch=Batch(argument=1, size=BATCH),
        analytic_flops=matmul_flops(steps),
    )


def training(steps: int) -> Computation:
    """A training step; backward needs one product per operand, except for the sequence itself."""
    params, hidden, xs, targets = make_inputs(steps)
    backward = 2 * steps * BATCH * HIDDEN * (FEATURES + HIDDEN) + 2 * steps * BATCH * HIDDEN * HIDDEN
    return Computation(
        subject=jax.jit(train_step(scanned)),
        reference=jax.jit(train_step(unrolled)),
        args=(params, hidden, xs, targets),
        next_args=lambda result, args: (result[0], *args[1:]),
        batch=Batch(argument=3, size=BATCH),
        analytic_flops=matmul_flops(steps) + backward,
    )


def claims(steps: int) -> tuple[Claim, ...]:
    """What scan must give over the unrolled loop, on any hardware."""
    always = (
        at_most(0.5, "stablehlo_ops", why="scan holds its body once"),
        at_most(1.0, "temp_bytes", why="scan keeps no more than the loop"),
        equal("matmul_flops", to="analytic_flops", why="the same multiplications, each step once"),
    )
    if steps < LONG:
        return always
    return (*always, at_most(0.5, "compile_ns", why="scan compiles its body once, the loop every step"))


SWEEP = ({"steps": 32}, {"steps": LONG})

CASES: tuple[Case, ...] = (
    *cases("scan", "rnn-forward-over-{steps}-steps-scan-vs-loop", forward, SWEEP, claims),
    *cases("scan", "rnn-training-over-{steps}-steps-scan-vs-loop", training, SWEEP, claims),
)
