"""What a step brings back to the host, or asks of it: numbers, whole arrays, Python functions.

To read a number is to wait for it, and to call Python is to stop the device until it has answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, mlp, over_samples
from workloads.placement.network import SIZES, draw_inputs, train_step

CASES = Family("placement")

STEPS = 4
TABLE = 64
"""Points of the function that is looked up."""


def read_at_the_end(step: Callable[..., Any], state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, float]:
    """Some steps, their losses added up on the device, and one number read."""
    params, total = state
    for _ in range(STEPS):
        params, total = step(params, total, x, y)
    return params, float(total) / STEPS


def read_each_time(step: Callable[..., Any], state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, float]:
    """The same, the loss read after each step: the next one is not launched before it is there."""
    (params, zero), losses = state, []
    for _ in range(STEPS):
        params, loss = step(params, zero, x, y)
        losses.append(float(loss))
    return params, sum(losses) / STEPS


@CASES.workload("loss-read-after-4-steps-vs-after-each", sizes=SIZES)
def losses_read(size: Extent) -> Computation:
    """A few steps of a training loop and their mean loss."""

    def adding(params: Tree, total: jax.Array, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        params, loss = train_step(params, x, y)
        return params, total + loss

    step = jax.jit(adding)
    params, x, y = draw_inputs(size)
    args = jax.device_put(((params, np.float32(0)), x, y))
    return Computation(
        subject=partial(read_at_the_end, step),
        reference=partial(read_each_time, step),
        args=args,
        next_args=lambda result, args: ((result[0], args[0][1]), *args[1:]),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=STEPS * size.batch, unit="samples"),
        rtol=size.rtol,
        eager=True,
        claims=[
            claim(f"launches == {STEPS}", "the step adds up its losses itself"),
            claim("host_transfers == 1", "one number is read for all steps"),
            claim("host_transfers <= 0.5 * reference", "in place of one for each, which nothing runs beside"),
        ],
    )


@CASES.workload("metrics-returned-vs-predictions-too", sizes=SIZES)
def metrics_only(size: Extent) -> Computation:
    """An evaluation that returns two scalars; the alternative returns what the network says, too, for the host to look at."""

    def evaluate(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
        error = mlp(params, x) - y
        return {"squared": (error**2).mean(), "absolute": jnp.abs(error).mean()}

    def predicting(params: Tree, x: jax.Array, y: jax.Array) -> Tree:
        found = mlp(params, x)
        return {"squared": ((found - y) ** 2).mean(), "absolute": jnp.abs(found - y).mean(), "found": found}

    args = jax.device_put(draw_inputs(size))
    return Computation(
        subject=jax.jit(evaluate),
        alternatives={"predictions returned": Alternative(function=jax.jit(predicting), args=args)},
        args=args,
        grow=over_samples(args, 1, 2),
        batch=Batch(argument=1, size=size.batch),
        claims=[
            claim("output_bytes <= 0.05 * alternatives", "two numbers, not an array for each sample"),
            claim("matmul_flops == reference", "one forward pass"),
            claim("host_callbacks == 0", "and nothing is asked of the host"),
        ],
    )


@CASES.workload("table-on-the-device-vs-pure-callback", sizes=SIZES)
def looked_up(size: Extent) -> Computation:
    """Numbers times what a table says of them, interpolated by the device, against the host's function, called from the program."""
    points = np.linspace(-4, 4, TABLE, dtype=np.float32)
    values = np.tanh(points)

    def on_the_device(points: jax.Array, values: jax.Array, x: jax.Array) -> jax.Array:
        return x * jnp.interp(x, points, values)

    def by_the_host(points: jax.Array, values: jax.Array, x: jax.Array) -> jax.Array:
        found: jax.Array = jax.pure_callback(interpolated, jax.ShapeDtypeStruct(x.shape, x.dtype), points, values, x)
        return x * found

    return Computation(
        subject=jax.jit(on_the_device),
        reference=jax.jit(by_the_host),
        args=jax.device_put((points, values, drawing()((size.batch, size.width)))),
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=size.batch * size.width, unit="values"),
        rtol=1e-3,
        claims=[
            claim("host_callbacks == 0", "the device does not wait for Python"),
            claim("constant_bytes == 0", "the table is an argument"),
        ],
    )


def interpolated(points: Any, values: Any, x: Any) -> Any:
    """``np.interp`` in float32, for the host."""
    return np.interp(np.asarray(x), np.asarray(points), np.asarray(values)).astype(np.float32)


def ignored(loss: Any) -> None:
    """What a logger is given; the numbers of a catalogue go nowhere."""
    del loss


@CASES.workload("losses-returned-by-4-steps-vs-io-callback", sizes=SIZES)
def logged(size: Extent) -> Computation:
    """Steps in one program that returns all losses, against one that sends the host each of them."""

    def returning(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        return jax.lax.scan(lambda p, _: train_step(p, x, y), params, length=STEPS)

    def telling(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        def step(params: Tree, _: None) -> tuple[Tree, jax.Array]:
            params, loss = train_step(params, x, y)
            io_callback(ignored, None, loss, ordered=True)
            return params, loss

        return jax.lax.scan(step, params, length=STEPS)

    return Computation(
        subject=jax.jit(returning, donate_argnums=0),
        reference=jax.jit(telling),
        args=jax.device_put(draw_inputs(size)),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=STEPS * size.batch, unit="samples"),
        rtol=size.rtol,
        claims=[
            claim("host_callbacks == 0", "no step waits for Python"),
            claim("aliased_bytes >= donated_bytes", "the parameters are reused"),
            claim("matmul_flops == reference", "each step has one forward and one backward pass"),
        ],
    )
