"""Donation: a training step that reuses the buffers of its old parameters and optimiser state.

All of the state donated, or a part of it: what is left out is held twice, old and new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import optax

from jaxgate import Alternative, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, drawing, mlp, mlp_params, over_samples, sizes, squared_error

CASES = Family("donation")

State = tuple[Any, optax.OptState]
Step = Callable[[State, jax.Array, jax.Array], tuple[State, jax.Array]]


SIZES = sizes(batch=(64, 2048), width=(256, 4096), layers=(3, 8))
"""A multi-layer perceptron [width, width] x layers, and the samples of one step."""

OPTIMISERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "sgd": lambda: optax.sgd(1e-2),
    "momentum": lambda: optax.sgd(1e-2, momentum=0.9),
    "adamw": lambda: optax.adamw(1e-3),
}

SHARES = {
    # Momentum keeps one array for each parameter.
    ("momentum", "parameters"): (1 / 2, 1 / 2),
    ("momentum", "optimiser-state"): (1 / 2, 1 / 2),
}
"""The share of the state that a part of it is: at least, at most."""

PARTS = ("parameters", "optimiser-state")


def step_flops(size: Extent) -> int:
    """Per layer: forward, gradient of the kernel, gradient of the input (which the first layer does not need)."""
    return (3 * size.layers - 1) * 2 * size.batch * size.width * size.width


def train_step(optimiser: str) -> Step:
    """One step of an optimiser, parameters and optimiser state in and out."""
    transformation = OPTIMISERS[optimiser]()

    def step(state: State, x: jax.Array, y: jax.Array) -> tuple[State, jax.Array]:
        params, opt_state = state
        loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
        updates, opt_state = transformation.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    return step


def make_inputs(size: Extent, optimiser: str) -> tuple[State, jax.Array, jax.Array]:
    """Draw the state and a batch: x and y [batch, width]."""
    draw = drawing()
    params = jax.device_put(mlp_params(draw, size.width, size.layers))
    x, y = jax.device_put((draw((size.batch, size.width)), draw((size.batch, size.width))))
    return (params, OPTIMISERS[optimiser]().init(params)), x, y


@CASES.workload("{optimiser}-step-donated-vs-copied", sweep=({"optimiser": "sgd"}, {"optimiser": "adamw"}), sizes=SIZES)
def whole(size: Extent, optimiser: str) -> Computation:
    """The step with its state donated, against the same step that copies."""
    step, args = train_step(optimiser), make_inputs(size, optimiser)
    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        reference=jax.jit(step),
        args=args,
        grow=over_samples(args, 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=step_flops(size),
        claims=[
            claim("donated_bytes >= 1", "the state is donated at all"),
            claim("aliased_bytes >= donated_bytes", "every donated buffer is reused"),
            claim("state_bytes <= 0.6 * reference", "old and new state share their memory"),
            claim("xla_flops <= 1.01 * reference", "donation adds no work"),
            claim("matmul_flops == analytic_flops", "one forward, one backward pass"),
        ],
    )


@CASES.workload(
    "{optimiser}-step-with-only-its-{donated}-donated-vs-copied",
    sweep=tuple({"optimiser": optimiser, "donated": donated} for optimiser, donated in SHARES),
    sizes=SIZES,
)
def partial(size: Extent, optimiser: str, donated: str) -> Computation:
    """The step with a part of its state donated, against the step that copies; with all of it donated as the alternative."""
    together = train_step(optimiser)

    def step(params: Any, opt_state: Any, x: jax.Array, y: jax.Array) -> tuple[State, jax.Array]:
        return together((params, opt_state), x, y)

    (params, opt_state), x, y = make_inputs(size, optimiser)
    args = (params, opt_state, x, y)
    return Computation(
        subject=jax.jit(step, donate_argnums=PARTS.index(donated)),
        reference=jax.jit(step),
        alternatives={
            "all of the state donated": Alternative(function=jax.jit(step, donate_argnums=(0, 1)), args=args)
        },
        args=args,
        next_args=lambda result, args: (*result[0], *args[2:]),
        batch=Batch(argument=2, size=size.batch),
        analytic_flops=step_flops(size),
        claims=partial_claims(optimiser, donated),
    )


def partial_claims(optimiser: str, donated: str) -> tuple[Claim, ...]:
    """What is reused, and what is still held twice, on any hardware.

    A step holds its arguments and results, less what is aliased: with the arguments and results of the copying step,
    the bytes held twice are those that the alternative aliases and this does not. Which result takes a buffer is JAX's
    choice: new parameters may lie where the old momentum lay.
    """
    least, most = SHARES[optimiser, donated]
    return (
        claim("aliased_bytes >= donated_bytes", "every donated buffer is reused"),
        claim(f"aliased_bytes >= {least} * alternatives", f"the {donated} are reused, whole"),
        claim(f"aliased_bytes <= {most} * alternatives", "and the rest of the state is held twice"),
        claim("argument_bytes == reference", "the arguments are those of the copying step"),
        claim("output_bytes == reference", "and so are the results: nothing else can make a difference"),
        claim("state_bytes <= 0.9 * reference", "it holds less than the step that copies"),
        claim("state_bytes >= 1.2 * alternatives", "and more than the one with all of its state donated"),
        claim("matmul_flops == analytic_flops", "one forward, one backward pass"),
    )
