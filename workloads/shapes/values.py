"""What is left over or picked out in arrays of a fixed size, and what is a value or a part of the program.

The last batch of an epoch is shorter than the others, and a Boolean mask gives an array of a new length each time: both
are programs that are compiled for one call. Filled up, with the number of real rows beside it, they are one program.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_params, sizes, squared_error

CASES = Family("shapes")

SIZES = sizes(
    batch=(32, 4096),  # samples in one call
    width=(64, 2048),  # features
    layers=(2, 8),  # of the perceptron
    candidates=(1024, 2**22),  # boxes among which some are picked out
    rtol=(1e-4, 1e-2),
)
"""A perceptron [width, width] x layers, and the samples that it is evaluated on."""
CALLS = 4
"""Calls of an epoch, the last one with fewer samples."""


def error_sum(params: Tree, x: jax.Array, y: jax.Array, count: jax.Array, total: jax.Array) -> jax.Array:
    """Add the squared errors of the first ``count`` samples to a total; x and y [batch, width]."""
    errors = ((mlp(params, x) - y) ** 2).mean(-1)
    return total + jnp.where(jnp.arange(len(errors)) < count, errors, 0.0).sum()


def over_batches(batch: int, taken: Callable[[np.ndarray[Any, Any], int], np.ndarray[Any, Any]]) -> Callable[..., Any]:
    """Mean error over all samples, batch by batch, the total kept on the device.

    Args:
        batch: Samples in one call.
        taken: Gives the samples of a call, and what the last one lacks.
    """
    add = jax.jit(error_sum)

    def evaluate(params: Tree, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
        total: Any = np.float32(0)
        for at in range(0, len(x), batch):
            count = np.int32(min(batch, len(x) - at))
            total = add(params, taken(x[at : at + batch], batch), taken(y[at : at + batch], batch), count, total)
        return jax.device_get(total) / len(x)

    return evaluate


def filled_up(samples: np.ndarray[Any, Any], batch: int) -> np.ndarray[Any, Any]:
    return np.concatenate([samples, np.zeros((batch - len(samples), *samples.shape[1:]), samples.dtype)])


def left_short(samples: np.ndarray[Any, Any], batch: int) -> np.ndarray[Any, Any]:
    del batch
    return samples


@CASES.workload("last-batch-filled-up-vs-left-short", sizes=SIZES)
def last_batch(size: Extent) -> Computation:
    """An epoch of evaluation over other samples in each call, none of them a multiple of the batch."""
    draw = drawing()
    params = jax.device_put(mlp_params(draw, size.width, size.layers))
    turns = []
    for remainder in (size.batch // 8, size.batch // 2, 5 * size.batch // 8):
        samples = (CALLS - 1) * size.batch + remainder
        turns.append((draw((samples, size.width)), draw((samples, size.width))))
    after = {len(x): turns[(turn + 1) % len(turns)] for turn, (x, _) in enumerate(turns)}
    return Computation(
        subject=over_batches(size.batch, filled_up),
        reference=over_batches(size.batch, left_short),
        args=(params, *turns[0]),
        next_args=lambda _, args: (args[0], *after[len(args[1])]),
        batch=Batch(argument=1, size=len(turns[0][0])),
        rtol=size.rtol,
        eager=True,
        claims=[
            claim("compiles == 1", "the last batch has the shape of all others, however many samples are left"),
            claim(f"launches == {CALLS}", "every sample is in one of the batches, and nothing runs between them"),
            claim("host_transfers <= reference", "filling up sends no further array"),
        ],
    )


def picked_of(room: int) -> Callable[..., Any]:
    """Boxes whose score is positive in an array of a fixed size, their number, and the best score of all.

    Args:
        room: Boxes that the result has room for; the rest of it is 0.
    """

    def picked(scores: jax.Array, boxes: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        (found,) = jnp.nonzero(scores > 0, size=room, fill_value=len(scores))
        return boxes.at[found].get(mode="fill", fill_value=0), (scores > 0).sum(), scores.max()

    return jax.jit(picked)


def masked_of(room: int) -> Callable[..., Any]:
    def masked(scores: jax.Array, boxes: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        found = boxes[scores > 0]
        return jnp.pad(found, ((0, room - len(found)), (0, 0))), (scores > 0).sum(), scores.max()

    return masked


@CASES.workload("boxes-picked-in-a-fixed-size-vs-by-a-mask", sizes=SIZES)
def picked_out(size: Extent) -> Computation:
    draw = drawing()
    boxes, scores = jax.device_put((draw((size.candidates, 4)), draw(size.candidates) - 1))
    return Computation(
        subject=picked_of(size.candidates // 2),
        reference=masked_of(size.candidates // 2),
        args=(scores, boxes),
        # Mirrored, so that others are positive, and not as many: a sixth or a quarter of all.
        next_args=lambda _, args: (jax.device_put(np.float32(-1.6) - np.asarray(args[0])), args[1]),
        batch=Batch(argument=0, size=size.candidates, unit="boxes"),
        eager=True,
        claims=[
            claim("compiles == 1", "one program, however many are picked"),
            claim("launches == 1", "counting, picking and filling up are one program"),
            claim("launches <= 0.5 * reference", "a mask is searched, counted and applied in programs of their own"),
            claim("host_transfers == 0", "nobody has to know how many there are"),
        ],
    )


# What is a value and what is a part of the program: static arguments, Python numbers, numbers on the device.


def forward_flops(size: Extent) -> int:
    """One product for each layer."""
    return 2 * size.layers * size.batch * size.width**2


def step_flops(size: Extent) -> int:
    """And two more on the way back; nobody asks for the gradient of the samples."""
    return 3 * forward_flops(size) - 2 * size.batch * size.width**2


def make_batch(size: Extent) -> tuple[Tree, jax.Array, jax.Array]:
    draw = drawing()
    params = mlp_params(draw, size.width, size.layers)
    found: tuple[Tree, jax.Array, jax.Array] = jax.device_put(
        (params, draw((size.batch, size.width)), draw((size.batch, size.width)))
    )
    return found


@CASES.workload("rate-as-an-argument-vs-static", sizes=SIZES)
def new_rate(size: Extent) -> Computation:
    def step(state: Tree, x: jax.Array, y: jax.Array, rate: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(state["params"])
        average = 0.9 * state["average"] + 0.1 * loss
        return {"params": descend(state["params"], grads, rate), "average": average}, loss

    params, x, y = make_batch(size)
    # A float32 from the start: what comes back is one, and 0.0 in its place would be another program at step 2.
    average = jax.device_put(np.float32(0))
    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        reference=jax.jit(step, static_argnames="rate", donate_argnums=0),
        args=({"params": params, "average": average}, x, y, 0.1),
        next_args=lambda result, args: (result[0], *args[1:3], 0.99 * args[3]),
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=step_flops(size),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "every step has another rate, and no step another program"),
            claim("aliased_bytes >= donated_bytes", "the state is reused"),
            claim("matmul_flops == analytic_flops", "one forward, one backward pass"),
            claim("xla_flops <= 1.05 * reference", "an argument costs no more than a constant"),
            claim("temp_bytes <= 1.05 * reference", "in memory neither"),
        ],
    )


@CASES.workload("bfloat16-scaled-by-a-python-number-vs-a-float32-scalar", sizes=SIZES)
def python_numbers(size: Extent) -> Computation:
    def decayed(params: Tree, factor: Any) -> Tree:
        return jax.tree.map(lambda p: p * factor, params)

    def widened(params: Tree, factor: Any) -> Tree:
        return jax.tree.map(lambda p: (p * jnp.float32(factor)).astype(p.dtype), params)

    draw = drawing()
    params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), mlp_params(draw, size.width, size.layers))
    return Computation(
        subject=jax.jit(decayed, donate_argnums=0),
        reference=jax.jit(widened),
        args=(jax.device_put(params), 0.75),
        carry=0,
        amount=Amount(count=size.layers * size.width * (size.width + 1), unit="parameters"),
        rtol=1e-2,
        atol=1e-5,
        claims=[
            claim("compiles == 1", "a Python number is the same argument at each step"),
            claim("widened_bytes == 0", "a Python number takes the type of the array beside it"),
            claim("stablehlo_ops <= 0.8 * reference", "nothing is converted, there and back"),
        ],
    )
