"""What is left over or picked out: as many samples as there happen to be, in arrays of a fixed size.

The last batch of an epoch is shorter than the others, and a Boolean mask gives an array of a new length each time: both
are programs that are compiled for one call. Filled up, with the number of real rows beside it, they are one program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, mlp, mlp_params, sizes

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

Picker = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]
Evaluate = Callable[[Tree, np.ndarray[Any, Any], np.ndarray[Any, Any]], jax.Array]


def error_sum(params: Tree, x: jax.Array, y: jax.Array, count: jax.Array, total: jax.Array) -> jax.Array:
    """Add the squared errors of the first ``count`` samples to a total; x and y [batch, width]."""
    errors = ((mlp(params, x) - y) ** 2).mean(-1)
    return total + jnp.where(jnp.arange(len(errors)) < count, errors, 0.0).sum()


def over_batches(batch: int, taken: Callable[[np.ndarray[Any, Any], int], np.ndarray[Any, Any]]) -> Evaluate:
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
    """Samples [batch, width], those that are missing all zeros."""
    return np.concatenate([samples, np.zeros((batch - len(samples), *samples.shape[1:]), samples.dtype)])


def left_short(samples: np.ndarray[Any, Any], batch: int) -> np.ndarray[Any, Any]:
    """The samples that there are."""
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


def picked_of(room: int) -> Picker:
    """Boxes whose score is positive in an array of a fixed size, their number, and the best score of all.

    Args:
        room: Boxes that the result has room for; the rest of it is 0.
    """

    def picked(scores: jax.Array, boxes: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        (found,) = jnp.nonzero(scores > 0, size=room, fill_value=len(scores))
        return boxes.at[found].get(mode="fill", fill_value=0), (scores > 0).sum(), scores.max()

    return jax.jit(picked)


def masked_of(room: int) -> Picker:
    """The same by a Boolean mask, whose result has a new length each time."""

    def masked(scores: jax.Array, boxes: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        found = boxes[scores > 0]
        return jnp.pad(found, ((0, room - len(found)), (0, 0))), (scores > 0).sum(), scores.max()

    return masked


@CASES.workload("boxes-picked-in-a-fixed-size-vs-by-a-mask", sizes=SIZES)
def picked_out(size: Extent) -> Computation:
    """Boxes picked out of scores [candidates] and boxes [candidates, 4], other ones in each call."""
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
