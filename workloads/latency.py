"""Latency: one request at a time, waited for (p50 and p99 of single calls), and one after the other without waiting.

With one sample there is nothing to divide the cost of a launch by: what counts is how many programs a request takes,
how often it crosses to the device and back, and work that is done for nobody.

One request at a time, which no batch shares the cost with: a small transformer and a perceptron, each call waited for
(`contract="latency"`, p50 and p99 of single calls) and the same without waiting (`throughput`). The request's own program
against one padded to a batch of eight, weights as arguments against weights captured by the program, one program
against one for each layer, a class picked on the device against logits brought to the host. Mistakes it catches: work
for nobody (`matmul_flops`), captured weights (`constant_bytes`), launches and trips to the host that multiply
(`launches`, `host_transfers`). p99 is shown and recorded, and decides nothing: on a shared machine it is the
machine's. Sources: JAX's page on benchmarking (asynchronous dispatch, `block_until_ready`) and its FAQ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Contract, Family, Growth, claim
from workloads.parts import (
    ONE_PROGRAM,
    Tree,
    block,
    block_params,
    drawing,
    mlp,
    mlp_layer,
    mlp_params,
    normalise,
    stretched,
)

CASES = Family("latency")

PADDED = 8
"""Requests that the padded program is made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """A multi-layer perceptron [width, width] x layers that answers with one of ``width`` classes."""

    width: int
    layers: int
    # between subject and reference, relative; accelerators round the operands of a product differently
    tolerance: float = 1e-4

    @property
    def request_flops(self) -> int:
        """One request by every matrix."""
        return 2 * self.layers * self.width**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """A transformer over one request of some tokens [1, tokens, width]; ``tolerance`` as in ``Layers``."""

    tokens: int
    width: int
    heads: int
    layers: int
    tolerance: float = 1e-4

    @property
    def request_flops(self) -> int:
        """Per block: twelve products with [width, width] for each token, and its scores and sums."""
        return self.layers * (2 * self.tokens * 12 * self.width**2 + 4 * self.tokens**2 * self.width)


LAYERS: dict[Literal["small", "full"], Layers] = {
    "small": Layers(width=128, layers=4),
    "full": Layers(width=2048, layers=8, tolerance=2e-2),
}
BLOCKS: dict[Literal["small", "full"], Blocks] = {
    "small": Blocks(tokens=16, width=64, heads=2, layers=2),
    "full": Blocks(tokens=128, width=768, heads=12, layers=12, tolerance=2e-2),
}


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
def transformer(size: Blocks, calls: str) -> Computation:
    """One request alone, against one among zeros."""
    draw = drawing()
    params = [block_params(draw, size.width, 4 * size.width) for _ in range(size.layers)]
    network = partial(encode, heads=size.heads)
    return Computation(
        subject=jax.jit(network),
        reference=jax.jit(padded(network)),
        args=jax.device_put((params, draw((1, size.tokens, size.width)))),
        batch=Batch(argument=1, size=1, unit="requests"),
        contract=CONTRACTS[calls],
        analytic_flops=size.request_flops,
        rtol=size.tolerance,
        atol=size.tolerance,
        claims=[
            claim("matmul_flops == analytic_flops", "one request is computed, and nothing for nobody"),
            claim("matmul_flops <= 0.2 * reference", f"the padded program computes {PADDED}"),
            claim("constant_bytes == 0", "the weights are arguments"),
        ],
    )


def make_layers(size: Layers) -> tuple[Any, Any]:
    """The perceptron, and one request [1, width]."""
    draw = drawing()
    return jax.device_put((mlp_params(draw, size.width, size.layers), draw((1, size.width))))


@CASES.workload("latency-of-one-request-to-an-mlp-blocked-vs-weights-in-the-program", sizes=LAYERS)
def perceptron(size: Layers) -> Computation:
    """Weights as arguments, against weights that the program has captured."""
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
        analytic_flops=size.request_flops,
        rtol=size.tolerance,
        atol=size.tolerance,
        claims=[
            claim("matmul_flops == analytic_flops", "one request by every matrix"),
            claim("constant_bytes == 0", "captured weights are copied into the program, and compiled with it"),
            claim("matmul_flops == reference", "wherever the weights are, they are multiplied"),
        ],
    )


@CASES.workload("latency-of-one-request-in-one-program-vs-layer-by-layer", sizes=LAYERS)
def in_one_program(size: Layers) -> Computation:
    """All layers in one program, against a program for each layer."""
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
def answered(size: Layers) -> Computation:
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
