"""What is a value and what is a part of the program: static arguments, Python numbers, numbers on the device.

A static argument is another program for each value; a Python number is a weakly typed argument, an array of one number a
strongly typed one, and to change from one to the other is another program, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Tree, descend, drawing, mlp, mlp_params, squared_error

CASES = Family("shapes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A perceptron [width, width] x layers, and logits over a vocabulary.

    Attributes:
        batch: Samples, or rows of logits.
        width: Features.
        layers: Of the perceptron.
        vocabulary: Logits in a row.
        rtol: Between subject and reference; accelerators round the operands of a product to fewer bits.
    """

    batch: int
    width: int
    layers: int
    vocabulary: int
    rtol: float = 1e-4

    @property
    def forward_flops(self) -> int:
        """One product for each layer."""
        return 2 * self.layers * self.batch * self.width**2

    @property
    def step_flops(self) -> int:
        """And two more on the way back; nobody asks for the gradient of the samples."""
        return 3 * self.forward_flops - 2 * self.batch * self.width**2


SIZES: dict[Literal["small", "full"], Size] = {
    "small": Size(batch=32, width=64, layers=2, vocabulary=256),
    "full": Size(batch=4096, width=2048, layers=8, vocabulary=32768, rtol=1e-2),
}
NEXT_BEST = {5: 10, 10: 40, 40: 5}
"""How many tokens may be chosen from in the next call."""
DROPPED = 0.25


def make_batch(size: Size) -> tuple[Tree, jax.Array, jax.Array]:
    """Draw parameters, x and y [batch, width]."""
    draw = drawing()
    params = mlp_params(draw, size.width, size.layers)
    found: tuple[Tree, jax.Array, jax.Array] = jax.device_put(
        (params, draw((size.batch, size.width)), draw((size.batch, size.width)))
    )
    return found


def among_sorted(logits: jax.Array, best: jax.Array) -> jax.Array:
    """Probabilities of the best tokens, all others 0; how many is a number like any other."""
    ordered = jnp.sort(logits, axis=-1)
    least = jax.lax.dynamic_index_in_dim(ordered, logits.shape[-1] - best, axis=-1)
    return jax.nn.softmax(jnp.where(logits >= least, logits, -jnp.inf), axis=-1)


def among_top_k(logits: jax.Array, best: int) -> jax.Array:
    """The same by ``jax.lax.top_k``, whose result is as long as there are best tokens: a part of the program."""
    least = jax.lax.top_k(logits, best)[0][:, -1:]
    return jax.nn.softmax(jnp.where(logits >= least, logits, -jnp.inf), axis=-1)


@CASES.workload("best-tokens-with-their-number-traced-vs-static", sizes=SIZES)
def best_tokens(size: Size) -> Computation:
    """Logits [batch, vocabulary] and a Python number that every call has another value of."""
    logits = jax.device_put(drawing()((size.batch, size.vocabulary)))
    subject = jax.jit(among_sorted)
    return Computation(
        subject=subject,
        reference=jax.jit(among_top_k, static_argnames="best"),
        alternatives={"more of them": Alternative(function=subject, args=(logits, 40))},
        args=(logits, 5),
        next_args=lambda _, args: (args[0], NEXT_BEST[args[1]]),
        batch=Batch(argument=0, size=size.batch, unit="rows"),
        claims=[
            claim("compiles == 1", "how many are chosen from is a value: 5, 10 or 40, one program"),
            claim("stablehlo_ops == alternatives", "nothing in the program depends on it"),
        ],
    )


def network(params: Tree, x: jax.Array, key: jax.Array, train: bool) -> jax.Array:  # noqa: FBT001 - the flag is the point
    """A perceptron that drops features while it is trained; what the flag says is in the program, or is not."""
    if train:
        return dropped(params, x, key)
    return mlp(params, x)


def dropped(params: Tree, x: jax.Array, key: jax.Array) -> jax.Array:
    """The perceptron on samples some of whose features are dropped."""
    kept = jax.random.bernoulli(key, 1 - DROPPED, x.shape)
    return mlp(params, jnp.where(kept, x / (1 - DROPPED), 0.0))


def branching(params: Tree, x: jax.Array, key: jax.Array, train: jax.Array) -> jax.Array:
    """The same with both branches in one program."""
    return jax.lax.cond(train, dropped, lambda params, x, _: mlp(params, x), params, x, key)


@CASES.workload("static-flag-of-two-values-vs-a-branch", sizes=SIZES)
def static_flag(size: Size) -> Computation:
    """A call that trains and one that evaluates, in turn: a static argument of two values."""
    params, x, _ = make_batch(size)
    key = jax.random.key(0)
    subject = jax.jit(network, static_argnames="train")
    return Computation(
        subject=subject,
        reference=jax.jit(branching),
        alternatives={"evaluation": Alternative(function=subject, args=(params, x, key, False))},
        args=(params, x, key, True),
        next_args=lambda _, args: (*args[:3], not args[3]),
        expected_traces=2,
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=size.forward_flops,
        rtol=size.rtol,
        claims=[
            claim("compiles == 2", "one program for each value, however often they change"),
            claim("stablehlo_ops <= reference", "neither program holds the other's operations"),
            claim("stablehlo_ops >= 2 * alternatives", "evaluation draws no random numbers"),
            claim("matmul_flops == analytic_flops", "and each does its own products"),
        ],
    )


@CASES.workload("rate-as-an-argument-vs-static", sizes=SIZES)
def new_rate(size: Size) -> Computation:
    """A training step whose rate is another Python number at each step, against one with the rate compiled in."""

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
        analytic_flops=size.step_flops,
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
def python_numbers(size: Size) -> Computation:
    """Parameters in bfloat16, scaled by a Python number, against an array of float32."""

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
