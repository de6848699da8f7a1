"""Latency: one request at a time, waited for (p50 and p99 of single calls), and one after the other without waiting.

With one sample there is nothing to divide the cost of a launch by: what counts is how many programs a request takes,
how often it crosses to the device and back, and work that is done for nobody.

A small transformer and a perceptron, each call waited for (`contract="latency"`) and the same without waiting
(`throughput`). The request's own program against one padded to a batch of eight, weights as arguments against weights
captured by the program, one program against one for each layer, a class picked on the device against logits brought to
the host. Mistakes it catches: work for nobody (`matmul_flops`), captured weights (`constant_bytes`), launches and trips
to the host that multiply (`launches`, `host_transfers`). p99 is shown and recorded, and decides nothing: on a shared
machine it is the machine's. Sources: JAX's page on benchmarking (asynchronous dispatch, `block_until_ready`) and its
FAQ.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Contract, Family, Growth, claim
from workloads.parts import (
    ONE_PROGRAM,
    Extent,
    Tree,
    block,
    block_params,
    drawing,
    mlp,
    mlp_layer,
    mlp_params,
    normalise,
    sizes,
    stretched,
)

CASES = Family("latency")

PADDED = 8
"""Requests that the padded program is made for."""

LAYERS = sizes(width=(128, 2048), layers=(4, 8), tolerance=(1e-4, 2e-2))
"""A multi-layer perceptron [width, width] x layers that answers with one of ``width`` classes."""
BLOCKS = sizes(tokens=(16, 128), width=(64, 768), heads=(2, 12), layers=(2, 12), tolerance=(1e-4, 2e-2))
"""A transformer over one request of some tokens [1, tokens, width]."""


def flops_of_blocks(size: Extent) -> int:
    """Per block: twelve products with [width, width] for each token, and its scores and sums."""
    return size.layers * (2 * size.tokens * 12 * size.width**2 + 4 * size.tokens**2 * size.width)


def encode(params: Tree, x: jax.Array, heads: int) -> jax.Array:
    """All blocks, then the mean over the tokens: x [requests, tokens, width] to [requests, width]."""
    for layer in params:
        x = block(layer, x, heads)
    return normalise(x).mean(1)


def padded(network: Callable[[Tree, jax.Array], jax.Array]) -> Callable[[Tree, jax.Array], jax.Array]:
    """A program for ``PADDED`` requests, of which one is asked."""

    def answer(params: Tree, x: jax.Array) -> jax.Array:
        rows = jnp.concatenate([x, jnp.zeros((PADDED - len(x), *x.shape[1:]), x.dtype)])
        # Behind a barrier, as in a server: the program for many does not know that it is asked for one.
        return jax.lax.optimization_barrier(network(params, jax.lax.optimization_barrier(rows)))[: len(x)]

    return answer


CONTRACTS: dict[str, Contract] = {"blocked": "latency", "pipelined": "throughput"}
BOTH = tuple({"calls": calls} for calls in CONTRACTS)


@CASES.workload("latency-of-one-request-to-a-transformer-{calls}-vs-padded-to-8", sweep=BOTH, sizes=BLOCKS)
def transformer(size: Extent, calls: str) -> Computation:
    draw = drawing()
    params = [block_params(draw, size.width, 4 * size.width) for _ in range(size.layers)]
    network = partial(encode, heads=size.heads)
    return Computation(
        subject=jax.jit(network),
        reference=jax.jit(padded(network)),
        args=jax.device_put((params, draw((1, size.tokens, size.width)))),
        batch=Batch(argument=1, size=1, unit="requests"),
        contract=CONTRACTS[calls],
        analytic_flops=flops_of_blocks(size),
        rtol=size.tolerance,
        atol=size.tolerance,
        claims=[
            claim("matmul_flops == analytic_flops", "one request is computed, and nothing for nobody"),
            claim("matmul_flops <= 0.2 * reference", f"the padded program computes {PADDED}"),
            claim("constant_bytes == 0", "the weights are arguments"),
        ],
    )


def make_layers(size: Extent) -> tuple[Any, Any]:
    draw = drawing()
    return jax.device_put((mlp_params(draw, size.width, size.layers), draw((1, size.width))))


@CASES.workload("latency-of-one-request-to-an-mlp-blocked-vs-weights-in-the-program", sizes=LAYERS)
def perceptron(size: Extent) -> Computation:
    params, x = make_layers(size)

    def captured(_: Tree, x: jax.Array) -> jax.Array:
        return mlp(params, x)

    return Computation(
        subject=jax.jit(mlp),
        reference=jax.jit(captured),
        args=(params, x),
        grow=Growth(lambda samples: (params, stretched(samples, x)), samples=(2, 4, 8), claims=[ONE_PROGRAM]),
        batch=Batch(argument=1, size=1, unit="requests"),
        contract=CONTRACTS["blocked"],
        rtol=size.tolerance,
        atol=size.tolerance,
        claims=[
            claim("constant_bytes == 0", "captured weights are copied into the program, and compiled with it"),
            claim("matmul_flops == reference", "wherever the weights are, they are multiplied"),
        ],
    )


@CASES.workload("latency-of-one-request-in-one-program-vs-layer-by-layer", sizes=LAYERS)
def in_one_program(size: Extent) -> Computation:
    whole, one_layer = jax.jit(mlp), jax.jit(mlp_layer)

    def at_once(params: Tree, x: jax.Array) -> jax.Array:
        return whole(params, x)

    def layer_by_layer(params: Tree, x: jax.Array) -> jax.Array:
        for layer in params:
            x = one_layer(layer, x)
        return x

    return Computation(
        subject=at_once,
        reference=layer_by_layer,
        args=make_layers(size),
        batch=Batch(argument=1, size=1, unit="requests"),
        contract="latency",
        rtol=size.tolerance,
        atol=size.tolerance,
        eager=True,
        claims=[
            claim("launches == 1", "a request is one program"),
            claim("launches <= 0.3 * reference", "each layer's own program is launched and waited for by the next"),
            claim("host_transfers == 0", "the request is on the device"),
        ],
    )


@CASES.workload("latency-of-a-class-picked-on-the-device-vs-on-the-host", sizes=LAYERS)
def answered(size: Extent) -> Computation:
    """The class picked on the device and brought back once, against logits brought back, read and sent again."""

    def answer(params: Tree, x: jax.Array) -> jax.Array:
        return mlp(params, x).argmax(-1)

    picked, logits = jax.jit(answer), jax.jit(mlp)

    def on_the_device(params: Tree, x: jax.Array) -> Any:
        return picked(params, x)

    def on_the_host(params: Tree, x: jax.Array) -> Any:
        scores = logits(params, x)[0].tolist()
        return jnp.asarray([scores.index(max(scores))], jnp.int32)

    return Computation(
        subject=on_the_device,
        reference=on_the_host,
        args=make_layers(size),
        batch=Batch(argument=1, size=1, unit="requests"),
        contract="latency",
        eager=True,
        claims=[
            claim("launches == 1", "the class is picked by the program that scores it"),
            claim("host_transfers == 0", "nothing is sent back and forth for it"),
            claim("launches <= 0.5 * reference", "reading one row of an array is a program, too"),
        ],
    )
