"""Latency: one request at a time, waited for (p50 and p99 of single calls), and one after the other without waiting.

With one sample there is nothing to divide the cost of a launch by: what counts is how many programs a request takes,
how often it crosses to the device and back, and work that is done for nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxgate.model import Amount, Batch, Case, Claim, Computation, Contract, at_most, cases, equal
from workloads.parts import Tree, block, block_params, drawing, mlp, mlp_layer, mlp_params, normalise

PADDED = 8
"""Requests that the padded program is made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """A multi-layer perceptron [width, width] x layers that answers with one of ``width`` classes.

    Attributes:
        tolerance: Between subject and reference, relative; accelerators round the operands of a product differently.
    """

    width: int
    layers: int
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

ONE = Amount(count=1, unit="requests")


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


def transformer(size: Blocks, calls: str) -> Computation:
    """One request alone, against one among zeros."""
    draw = drawing()
    params = [block_params(draw, size.width, 4 * size.width) for _ in range(size.layers)]
    network = partial(encode, heads=size.heads)
    return Computation(
        subject=jax.jit(network),
        reference=jax.jit(padded(network)),
        args=jax.device_put((params, draw((1, size.tokens, size.width)))),
        batch=Batch(argument=1, size=1),
        amount=ONE,
        contract=CONTRACTS[calls],
        analytic_flops=size.request_flops,
        rtol=size.tolerance,
        atol=size.tolerance,
    )


def transformer_claims(calls: str) -> tuple[Claim, ...]:
    """What a program of one request's own gives, on any hardware."""
    del calls  # how it is timed changes nothing here
    return (
        equal("matmul_flops", to="analytic_flops", why="one request is computed, and nothing for nobody"),
        at_most(0.2, "matmul_flops", why=f"the padded program computes {PADDED}"),
        equal("constant_bytes", to=0, why="the weights are arguments"),
    )


def make_layers(size: Layers) -> tuple[Any, Any]:
    """The perceptron, and one request [1, width]."""
    draw = drawing()
    made: tuple[Any, Any] = jax.device_put((mlp_params(draw, size.width, size.layers), draw((1, size.width))))
    return made


def perceptron(size: Layers, calls: str) -> Computation:
    """Weights as arguments, against weights that the program has captured."""
    params, x = make_layers(size)

    def captured(_: Tree, x: jax.Array) -> jax.Array:
        return mlp(params, x)

    return Computation(
        subject=jax.jit(mlp),
        reference=jax.jit(captured),
        args=(params, x),
        batch=Batch(argument=1, size=1),
        amount=ONE,
        contract=CONTRACTS[calls],
        analytic_flops=size.request_flops,
        rtol=size.tolerance,
        atol=size.tolerance,
    )


def perceptron_claims(calls: str) -> tuple[Claim, ...]:
    """What weights in the arguments give, on any hardware."""
    del calls  # how it is timed changes nothing here
    return (
        equal("matmul_flops", to="analytic_flops", why="one request by every matrix"),
        equal("constant_bytes", to=0, why="captured weights are copied into the program, and compiled with it"),
        equal("matmul_flops", to="reference", why="wherever the weights are, they are multiplied"),
    )


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
        batch=Batch(argument=1, size=1),
        amount=ONE,
        contract="latency",
        rtol=size.tolerance,
        atol=size.tolerance,
        eager=True,
    )


def one_program_claims() -> tuple[Claim, ...]:
    """What one program gives, on any hardware."""
    return (
        equal("launches", to=1, why="a request is one program"),
        at_most(0.3, "launches", why="each layer's own program is launched and waited for by the next"),
        equal("host_transfers", to=0, why="the request is on the device"),
    )


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
        batch=Batch(argument=1, size=1),
        amount=ONE,
        contract="latency",
        eager=True,
    )


def answered_claims() -> tuple[Claim, ...]:
    """What an answer made on the device gives, on any hardware."""
    return (
        equal("launches", to=1, why="the class is picked by the program that scores it"),
        equal("host_transfers", to=0, why="nothing is sent back and forth for it"),
        at_most(0.5, "launches", why="reading one row of an array is a program, too"),
    )


CONTRACTS: dict[str, Contract] = {"blocked": "latency", "pipelined": "throughput"}
BOTH = tuple({"calls": calls} for calls in CONTRACTS)

CASES: tuple[Case, ...] = (
    *cases(
        "latency",
        "latency-of-one-request-to-a-transformer-{calls}-vs-padded-to-8",
        transformer,
        BOTH,
        transformer_claims,
        sizes=BLOCKS,
    ),
    *cases(
        "latency",
        "latency-of-one-request-to-an-mlp-{calls}-vs-weights-in-the-program",
        perceptron,
        BOTH,
        perceptron_claims,
        sizes=LAYERS,
    ),
    *cases(
        "latency",
        "latency-of-one-request-in-one-program-vs-layer-by-layer",
        in_one_program,
        ({},),
        one_program_claims,
        sizes=LAYERS,
    ),
    *cases(
        "latency",
        "latency-of-a-class-picked-on-the-device-vs-on-the-host",
        answered,
        ({},),
        answered_claims,
        sizes=LAYERS,
    ),
)
