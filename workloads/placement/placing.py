"""Where a perceptron's arguments are before a call, and what a step brings back to the host."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import (
    Extent,
    Tree,
    another,
    descend,
    drawing,
    grid,
    mlp,
    mlp_params,
    over_samples,
    sizes,
    squared_error,
)

CASES = Family("placement")

LEARNING_RATE = 0.01
LAYERS = 2

SIZES = sizes(
    batch=(64, 8192),  # samples in one call, a multiple of eight
    width=(64, 4096),  # features
    rtol=(1e-4, 1e-2),
)
"""How large the network and its batch are."""


def draw_inputs(size: Extent) -> tuple[Tree, Any, Any]:
    """Draw parameters, x and y [batch, width]; NumPy arrays, which are nowhere yet."""
    draw = drawing()
    shape = size.batch, size.width
    return mlp_params(draw, size.width, LAYERS), draw(shape), draw(shape)


def train_step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
    return descend(params, grads, LEARNING_RATE), loss


# Where arguments are before a call: on its device or another, spread or whole, on the host.

DEVICES = 8


@CASES.workload("batch-put-sharded-vs-through-the-first-device", sizes=SIZES, devices=DEVICES)
def put_sharded(size: Extent) -> Computation:
    mesh = grid(data=DEVICES)
    everywhere, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    step = jax.jit(mlp)
    moving_step = jax.jit(mlp, in_shardings=(everywhere, spread))
    params, x, _ = draw_inputs(size)

    def in_parts(params: Tree, x: Any) -> jax.Array:
        return step(params, jax.device_put(x, spread))

    def by_the_first(params: Tree, x: Any) -> jax.Array:
        return moving_step(params, jnp.asarray(x))

    return Computation(
        subject=in_parts,
        reference=by_the_first,
        args=(jax.device_put(params, everywhere), x),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("launches == 1", "each device is sent its part, and nothing is cut up there"),
            claim("launches <= 0.5 * reference", "the whole batch lands on one device and is cut there"),
            claim("host_transfers <= 0.75 * reference", "the batch is moved once, not twice"),
        ],
    )


@CASES.workload("parameters-kept-on-the-device-vs-sent-at-every-call", sizes=SIZES)
def kept_params(size: Extent) -> Computation:
    step = jax.jit(mlp)
    params, x, _ = draw_inputs(size)

    def kept(placed: Tree, x: Any) -> jax.Array:
        return step(placed, jax.device_put(x))

    def sent(placed: Tree, x: Any) -> jax.Array:
        del placed
        return step(params, x)

    return Computation(
        subject=kept,
        reference=sent,
        args=(jax.device_put(params), x),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("launches == 1", "sending is no program"),
            claim("host_transfers == 1", "only the batch is new"),
            claim(f"host_transfers <= {1 / (2 * LAYERS + 1)} * reference", "in place of all parameters"),
        ],
    )


@CASES.workload("state-committed-with-its-batch-vs-copied", sizes=SIZES)
def committed(size: Extent) -> Computation:
    """A training step whose state is put on the device beside the batch before the first call."""
    device = jax.devices()[0]
    params, x, y = draw_inputs(size)
    # The batch is committed, so each result is: a state that is not would be another argument at step 2.
    batch = jax.device_put((x, y), device)
    params = jax.device_put(params, device)
    return Computation(
        subject=jax.jit(train_step, donate_argnums=0),
        reference=jax.jit(train_step),
        args=(params, *batch),
        grow=over_samples((params, *batch), 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "what comes back is placed as what was given"),
            claim("aliased_bytes >= donated_bytes", "so that it can take the place of it"),
            claim("matmul_flops == reference", "one forward, one backward pass"),
        ],
    )


@CASES.workload("batch-spread-over-8-devices-vs-whole-on-each", sizes=SIZES, devices=DEVICES)
def spread_batch(size: Extent) -> Computation:
    """A training step on eight devices: state on each, batch in parts, against the whole batch on each."""
    mesh = grid(data=DEVICES)
    everywhere, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

    def whole(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        return train_step(params, *jax.lax.with_sharding_constraint((x, y), everywhere))

    params, x, y = draw_inputs(size)
    params = jax.device_put(params, everywhere)
    placed = jax.device_put((x, y), spread)
    unplaced = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=everywhere) for leaf in (x, y)]
    step = jax.jit(train_step, donate_argnums=0)
    return Computation(
        subject=step,
        reference=jax.jit(whole),
        alternatives=another("the batch put whole", step, (params, *unplaced)),
        args=(params, *placed),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "state that was placed on every device stays there"),
            claim("xla_flops <= 0.3 * reference", "each device works through an eighth of the batch"),
            claim("argument_bytes <= 0.9 * alternatives", "and holds that part of it only"),
            claim("collectives >= 1", "the gradients are summed over the devices"),
            claim("collective_bytes <= 1.1 * donated_bytes", "and nothing else travels"),
            claim("matmul_flops == reference", "one forward, one backward pass"),
        ],
    )


# What a step brings back to the host, or asks of it: numbers, whole arrays, Python functions.

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
        alternatives=another("predictions returned", jax.jit(predicting), args),
        args=args,
        grow=over_samples(args, 1, 2),
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=2 * LAYERS * size.batch * size.width**2,
        claims=[
            claim("output_bytes <= 0.05 * alternatives", "two numbers, not an array for each sample"),
            claim("matmul_flops == analytic_flops", "one forward pass"),
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
    del loss


@CASES.workload("losses-returned-by-4-steps-vs-io-callback", sizes=SIZES)
def logged(size: Extent) -> Computation:
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
