"""Which axis is mapped, and what is shared: nested maps, ensembles, broadcast arguments.

``in_axes=None`` hands one array to every instance without a copy. Repeating it first gives the same numbers, and as
many copies as there are instances.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, fused_on_gpu, mlp, mlp_params, sizes

CASES = Family("vmap")

LEARNING_RATE = 1.0  # large: the step must show in the parameters
RTOL = 1e-3  # accelerators may round the operands of a product, and not of every kernel alike

SAME_WORK = claim("matmul_flops == analytic_flops", "the same multiplications, each instance once")
ONE_BODY = claim("stablehlo_ops <= 0.5 * reference", "vmap holds the function once, the loop once for each instance")
SHARED = claim("argument_bytes <= 0.5 * alternatives", "the data is there once, not once for each member")

TOKENS = sizes(time=(4, 8), batch=(6, 16), features=(128, 1024), hidden=(256, 4096), vocabulary=(512, 32768))
"""Sequences of tokens and a network with one hidden layer that scores them."""


def token_score(params: Tree, x: jax.Array, token: jax.Array) -> jax.Array:
    """Log-probability of one token: x [features], token a number."""
    logits = jnp.tanh(x @ params["hidden"]) @ params["out"]
    return jax.nn.log_softmax(logits)[token]


def nested_maps(params: Tree, xs: jax.Array, tokens: jax.Array) -> jax.Array:
    """Scores [batch, time] of xs [time, batch, features], which nobody has to transpose."""
    over_time = jax.vmap(token_score, in_axes=(None, 0, 0))
    return jax.vmap(over_time, in_axes=(None, 1, 1))(params, xs, tokens)


def nested_loops(params: Tree, xs: jax.Array, tokens: jax.Array) -> jax.Array:
    """The same, one copy of the function for each sequence and moment."""
    time, batch = tokens.shape
    return jnp.stack(
        [jnp.stack([token_score(params, xs[t, b], tokens[t, b]) for t in range(time)]) for b in range(batch)]
    )


@CASES.workload("token-scores-nested-over-time-and-batch-vmap-vs-loops", sizes=TOKENS)
def token_scores(size: Extent) -> Computation:
    """Scores of every token of every sequence."""
    draw = drawing()
    params = {
        "hidden": np.float32(size.features**-0.5) * draw((size.features, size.hidden)),
        "out": np.float32(size.hidden**-0.5) * draw((size.hidden, size.vocabulary)),
    }
    tokens = np.random.default_rng(1).integers(size.vocabulary, size=(size.time, size.batch), dtype=np.int32)
    count = size.time * size.batch
    return Computation(
        subject=jax.jit(nested_maps),
        reference=jax.jit(nested_loops),
        args=jax.device_put((params, draw((size.time, size.batch, size.features)), tokens)),
        batch=Batch(argument=1, size=size.batch, axis=1),
        analytic_flops=2 * count * size.hidden * (size.features + size.vocabulary),
        amount=Amount(count=count, unit="tokens"),
        rtol=RTOL,
        atol=5e-3,  # of logits about one apart
        claims=[
            ONE_BODY,
            SAME_WORK,
            claim(
                "run_ns <= 0.8 * reference", "one product of two matrices in place of one with a vector for each token"
            ),
        ],
    )


ENSEMBLES = sizes(members=(8, 16), width=(48, 512), layers=(2, 4), batch=(256, 8192))
"""Networks of one shape, and the batch that all of them see."""


def each_member(function: Any) -> Any:
    """Map over the members' stacked parameters; the data is shared."""
    return lambda members, *data: jax.vmap(function, in_axes=(0, *(None,) * len(data)))(members, *data)


def one_by_one(function: Any) -> Any:
    """The same with a Python loop over the members."""

    def over_members(members: Tree, *data: jax.Array) -> Tree:
        count = jax.tree.leaves(members)[0].shape[0]
        results = [function(jax.tree.map(lambda leaf, i=i: leaf[i], members), *data) for i in range(count)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)

    return over_members


def make_ensemble(size: Extent) -> Any:
    """Draw the members' stacked parameters and the shared x and y [batch, width]."""
    draw = drawing()
    members = [mlp_params(draw, size.width, size.layers) for _ in range(size.members)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *members)
    return jax.device_put((stacked, draw((size.batch, size.width)), draw((size.batch, size.width))))


def repeated(array: jax.Array, times: int) -> jax.ShapeDtypeStruct:
    """An array as it would have to be passed if every instance had a copy of its own."""
    return jax.ShapeDtypeStruct((times, *array.shape), array.dtype)


@CASES.workload("ensemble-predictions-on-shared-data-vmap-vs-loop", sizes=ENSEMBLES)
def ensemble_predictions(size: Extent) -> Computation:
    """What every member says about the shared batch."""
    members, x, _ = make_ensemble(size)
    return Computation(
        subject=jax.jit(each_member(mlp)),
        reference=jax.jit(one_by_one(mlp)),
        args=(members, x),
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=2 * size.members * size.layers * size.batch * size.width**2,
        amount=Amount(count=size.members * size.batch, unit="predictions"),
        rtol=RTOL,
        atol=1e-3,  # of numbers about one
        alternatives={"data repeated": Alternative(function=jax.vmap(mlp), args=(members, repeated(x, size.members)))},
        claims=[ONE_BODY, SAME_WORK, SHARED],
    )


MEMORIES = sizes(readers=(32, 256), questions=(4, 128), rows=(128, 4096), width=(32, 512))
"""A table of rows, and readers that each ask it several questions."""


def read(questions: jax.Array, table: jax.Array) -> jax.Array:
    """Answers of one reader: the rows weighted by how well they match; questions [questions, width]."""
    return jax.nn.softmax(questions @ table.T) @ table


def read_shared(questions: jax.Array, table: jax.Array) -> jax.Array:
    """All readers' answers from one table [rows, width]; questions [readers, questions, width]."""
    return jax.vmap(read, in_axes=(0, None))(questions, table)


def read_copies(questions: jax.Array, table: jax.Array) -> jax.Array:
    """The same with a copy of the table for every reader."""
    return jax.vmap(read)(questions, jnp.tile(table, (questions.shape[0], 1, 1)))


@CASES.workload("reads-of-a-shared-table-broadcast-vs-tiled", sizes=MEMORIES)
def table_reads(size: Extent) -> Computation:
    """Readers of one table, which is shared against copied."""
    draw = drawing()
    scale = np.float32(size.width**-0.5)
    questions, table = jax.device_put(
        (scale * draw((size.readers, size.questions, size.width)), draw((size.rows, size.width)))
    )
    return Computation(
        subject=jax.jit(read_shared),
        reference=jax.jit(read_copies),
        args=(questions, table),
        batch=Batch(argument=0, size=size.readers),
        analytic_flops=4 * size.readers * size.questions * size.rows * size.width,
        amount=Amount(count=size.readers * size.questions, unit="reads"),
        rtol=RTOL,
        atol=1e-4,
        alternatives={
            "table repeated": Alternative(function=jax.vmap(read), args=(questions, repeated(table, size.readers)))
        },
        claims=[
            SAME_WORK,
            claim("argument_bytes <= 0.5 * alternatives", "the table is there once, not once for each reader"),
            claim("temp_bytes <= reference", "nothing is copied that is shared", known_break=fused_on_gpu()),
        ],
    )
