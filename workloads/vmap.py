"""vmap: one function of one example, batched by the transformation, against loops over the examples.

Against a Python loop and against `lax.map`: losses and gradients of single examples, maps nested over time and batch,
ensembles with shared data (`in_axes=(0, None)`), reads of a shared table, and Monte-Carlo paths with a typed key each.
A Python loop is unrolled, so the program grows with the batch; vmap holds the function once and multiplies all examples
at once (`stablehlo_ops`, `matmul_flops`, and for token by token scores `run_ns`). Its price is memory: per-example
gradients are as large as all parameters, times the batch. `lax.map(batch_size=...)` is between the two: a chunk of
gradients at a time (`temp_bytes`), a program that does not grow with the number of examples, and the examples that fill
no chunk are not dropped (the sizes leave some over on purpose). Mistakes it catches: the loop sneaks back; all examples
at once where chunks were meant; gradients kept where only norms are wanted; a shared argument tiled; a batch cut to
whole chunks; numbers drawn by Python while tracing, which are constants of the program; one key for all paths. Sources:
JAX documentation, "Automatic vectorization", "Pseudorandom numbers", and the reference of `jax.lax.map`. Not gated:
`lax.map` that forgets its `batch_size` needs less memory and more time; only the clock sees it.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import (
    Extent,
    Tree,
    another,
    drawing,
    fused_on_gpu,
    mlp,
    mlp_params,
    over_samples,
    sizes,
    squared_error,
)

CASES = Family("vmap")

Batched = Callable[[Tree, jax.Array, jax.Array], Any]
"""Of parameters, xs and ys [examples, time, width]: one result for each example, stacked."""

SIZES = sizes(width=(64, 1024), layers=(2, 4), time=(4, 128), examples=(24, 64))
"""How large the network, one example and the batch are."""


def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """Loss of one example: x and y [time, width]."""
    return squared_error(mlp(params, x), y)


def batched(function: Callable[..., Any]) -> Batched:
    """All examples in one: every operation gets one more axis."""
    return jax.vmap(function, in_axes=(None, 0, 0))


def looped(function: Callable[..., Any]) -> Batched:
    def over_examples(params: Tree, xs: jax.Array, ys: jax.Array) -> Any:
        results = [function(params, x, y) for x, y in zip(xs, ys, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)

    return over_examples


def mapped(function: Callable[..., Any]) -> Batched:
    """One example after the other, in a compiled loop."""
    return lambda params, xs, ys: jax.lax.map(lambda example: function(params, *example), (xs, ys))


def make_inputs(size: Extent) -> Any:
    """Draw parameters, xs and ys [examples, time, width]."""
    draw = drawing()
    params = mlp_params(draw, size.width, size.layers)
    shape = (size.examples, size.time, size.width)
    return jax.device_put((params, draw(shape), draw(shape)))


RTOL = 1e-3  # accelerators may round the operands of a product, and not of every kernel alike

NAIVE = {"loop": looped, "lax.map": mapped}

SWEEP = ({"naive": "loop"}, {"naive": "lax.map"})


@CASES.workload("per-example-loss-vmap-vs-{naive}", sweep=SWEEP, sizes=SIZES)
def losses(size: Extent, *, naive: str) -> Computation:
    """One loss for each example."""
    args = make_inputs(size)
    return Computation(
        subject=jax.jit(batched(loss)),
        reference=jax.jit(NAIVE[naive](loss)),
        args=args,
        grow=over_samples(args, 1, 2),
        batch=Batch(argument=1, size=size.examples, unit="examples"),
        rtol=RTOL,
        atol=1e-5,
        claims=claims(naive),
    )


@CASES.workload("per-example-gradients-vmap-vs-loop", sizes=SIZES)
def gradients(size: Extent) -> Computation:
    """One gradient for each example, all of them kept."""
    args = make_inputs(size)
    return Computation(
        subject=jax.jit(batched(jax.grad(loss))),
        reference=jax.jit(looped(jax.grad(loss))),
        args=args,
        grow=over_samples(args, 1, 2),
        batch=Batch(argument=1, size=size.examples, unit="examples"),
        rtol=RTOL,
        atol=1e-5,
        claims=(*claims("loop"), claim("temp_bytes <= reference", "every gradient is written where it belongs")),
    )


SAME_WORK = claim("matmul_flops == reference", "the same multiplications, each instance once")
ONE_BODY = claim("stablehlo_ops <= 0.5 * reference", "vmap holds the function once, the loop once for each instance")


def claims(naive: str) -> tuple[Claim, ...]:
    """What vmap must give over a loop, on any hardware."""
    if naive == "loop":
        return (ONE_BODY, SAME_WORK)
    return (claim("stablehlo_ops <= reference", "vmap adds no loop to the function"), SAME_WORK)


# Between ``vmap`` and a loop: ``lax.map(batch_size=...)`` for gradients of single examples that are not kept.

CHUNKED = sizes(SIZES, examples=(164, 260))
"""Of both sizes of chunk some examples are left over: a chunk that is not full must not be dropped."""


def gradient_norm(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    """Length of the gradient of one example, a scalar: x and y [time, width]."""
    grads = jax.grad(loss)(params, x, y)
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(grads)))


def chunked(function: Callable[..., jax.Array], chunk: int) -> Batched:
    """So many examples at a time, chunk after chunk in a compiled loop, the rest after it."""
    return lambda params, xs, ys: jax.lax.map(lambda example: function(params, *example), (xs, ys), batch_size=chunk)


@CASES.workload("per-example-gradient-norms-in-chunks-of-{chunk}-lax.map-vs-vmap", sweep=({"chunk": 8},), sizes=CHUNKED)
def gradient_norms(size: Extent, *, chunk: int) -> Computation:
    """Norms of all examples' gradients, in chunks against all at once."""
    params, xs, ys = make_inputs(size)
    in_chunks = chunked(gradient_norm, chunk)
    more = jax.ShapeDtypeStruct((size.examples + 4 * chunk, *xs.shape[1:]), xs.dtype)
    return Computation(
        subject=jax.jit(in_chunks),
        reference=jax.jit(batched(gradient_norm)),
        args=(params, xs, ys),
        batch=Batch(argument=1, size=size.examples, unit="examples"),
        rtol=RTOL,
        atol=1e-5,
        alternatives=another("four more chunks", in_chunks, (params, more, more)),
        claims=[
            claim("temp_bytes <= 0.5 * reference", "a chunk of gradients exists at a time, not all of them"),
            claim("stablehlo_ops == alternatives", "the program does not grow with the number of examples"),
            claim("matmul_flops == reference", "the same multiplications, each instance once"),
        ],
    )


# Which axis is mapped, and what is shared.


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
        amount=Amount(count=count, unit="tokens"),
        rtol=RTOL,
        atol=5e-3,  # of logits about one apart
        claims=[
            ONE_BODY,
            SAME_WORK,
            claim("run_ns <= 0.8 * reference", "one product of matrices, not one with a vector for each token"),
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
        amount=Amount(count=size.members * size.batch, unit="predictions"),
        rtol=RTOL,
        atol=1e-3,  # of numbers about one
        alternatives=another("data repeated", jax.vmap(mlp), (members, repeated(x, size.members))),
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
        amount=Amount(count=size.readers * size.questions, unit="reads"),
        rtol=RTOL,
        atol=1e-4,
        alternatives=another("table repeated", jax.vmap(read), (questions, repeated(table, size.readers))),
        claims=[
            SAME_WORK,
            claim("argument_bytes <= 0.5 * alternatives", "the table is there once, not once for each reader"),
            claim("temp_bytes <= reference", "nothing is copied that is shared", known_break=fused_on_gpu()),
        ],
    )


# Monte-Carlo: one function of one random key, mapped over as many keys as there are paths.

SPOT, STRIKE, RATE, VOLATILITY = 100.0, 50.0, 0.02, 0.2  # far in the money: no path pays nothing, each one shows
IMPLEMENTATION = "threefry2x32"  # gives a key the same numbers in a batch as alone

LOOPED = sizes(steps=504, paths=(8, 64))
"""How many paths, and how many steps each one has."""
MAPPED = sizes(steps=504, paths=(128, 65536))
"""How many paths, and how many steps each one has."""


def payoff(market: dict[str, jax.Array], key: jax.Array, steps: int) -> jax.Array:
    """Discounted payoff of an Asian call on one path of geometric Brownian motion, a scalar."""
    dt = 1 / steps
    normals = jax.random.normal(key, (steps,))
    drift = (market["rate"] - market["volatility"] ** 2 / 2) * dt
    growth = jnp.cumsum(drift + market["volatility"] * dt**0.5 * normals)
    mean = jnp.mean(market["spot"] * jnp.exp(growth))
    return jnp.exp(-market["rate"]) * jnp.maximum(mean - market["strike"], 0.0)


def make_market() -> Any:
    """Spot and strike in money, rate and volatility a year."""
    values = {"spot": SPOT, "strike": STRIKE, "rate": RATE, "volatility": VOLATILITY}
    return jax.device_put({name: np.float32(value) for name, value in values.items()})


def make_keys(paths: int) -> jax.Array:
    """One typed key for each path."""
    return jax.random.split(jax.random.key(0, impl=IMPLEMENTATION), paths)


def all_paths(steps: int) -> Callable[..., jax.Array]:
    """All paths in one: keys [paths]."""
    return lambda market, keys: jax.vmap(lambda key: payoff(market, key, steps))(keys)


def path_by_path(steps: int) -> Callable[..., jax.Array]:
    """One path after the other, in a compiled loop."""
    return lambda market, keys: jax.lax.map(lambda key: payoff(market, key, steps), keys)


def path_after_path(steps: int) -> Callable[..., jax.Array]:
    """One copy of the function for every path."""
    return lambda market, keys: jnp.stack([payoff(market, keys[path], steps) for path in range(keys.shape[0])])


def splitting(of_keys: Callable[..., jax.Array], paths: int) -> Callable[..., jax.Array]:
    """One key comes in, and is split before it reaches any path."""
    return lambda market, key: of_keys(market, jax.random.split(key, paths))


@CASES.workload("monte-carlo-with-a-key-for-each-path-vmap-vs-lax.map", sizes=MAPPED)
def keys_of_paths(size: Extent) -> Computation:
    """Payoffs of all paths: an array of keys comes in, one for each path."""
    market, keys = make_market(), make_keys(size.paths)
    subject = all_paths(size.steps)
    return Computation(
        subject=jax.jit(subject),
        reference=jax.jit(path_by_path(size.steps)),
        args=(market, keys),
        batch=Batch(argument=1, size=size.paths, unit="paths"),
        rtol=1e-4,
        atol=1e-3,  # of about fifty
        alternatives=another("twice the paths", subject, (market, make_keys(2 * size.paths))),
        claims=[NO_DRAWS, SAME_SIZE],
    )


@CASES.workload("monte-carlo-with-one-key-split-outside-vmap-vs-loop", sizes=LOOPED)
def key_of_a_call(size: Extent) -> Computation:
    """Payoffs of all paths: one key comes in, is split once, and the next call gets another one."""
    args = (make_market(), jax.random.key(0, impl=IMPLEMENTATION))
    return Computation(
        subject=jax.jit(splitting(all_paths(size.steps), size.paths)),
        reference=jax.jit(splitting(path_after_path(size.steps), size.paths)),
        args=args,
        next_args=lambda _, args: (args[0], jax.random.fold_in(args[1], 1)),
        amount=Amount(count=size.paths, unit="paths"),
        rtol=1e-4,
        atol=1e-3,  # of about fifty
        alternatives=another("twice the paths", splitting(all_paths(size.steps), 2 * size.paths), args),
        claims=[
            NO_DRAWS,
            SAME_SIZE,
            claim("stablehlo_ops <= 0.75 * reference", "vmap holds the function once, the loop once for each path"),
        ],
    )


# The generator has tables of its own, of some bytes; the draws of one path are about two kilobytes.
NO_DRAWS = claim("constant_bytes <= 512", "what is random comes from a key, nothing is drawn while tracing")
SAME_SIZE = claim("stablehlo_ops == alternatives", "the program does not grow with the number of paths")
