"""Gradients of several arguments: ``argnums`` shares the passes, a ``grad`` for each argument repeats them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.model import Amount, Batch, Case, Claim, Computation, at_least, at_most, cases, equal
from workloads.parts import Tree, descend, drawing, squared_error
from workloads.value_and_grad.network import RATE, SIZES, Size


def through(kernels: jax.Array, x: jax.Array) -> jax.Array:
    """All layers as one loop: kernels [layers, width, width], x [batch, width]."""
    hidden, _ = jax.lax.scan(lambda h, kernel: (jnp.tanh(h @ kernel), None), x, kernels)
    return hidden


def reconstruction(encoder: jax.Array, decoder: jax.Array, x: jax.Array) -> tuple[jax.Array, Tree]:
    """The error of an autoencoder, and what its code looks like."""
    code = through(encoder, x)
    return squared_error(through(decoder, code), x), {"code_scale": jnp.abs(code).mean()}


def together(encoder: jax.Array, decoder: jax.Array, x: jax.Array) -> tuple[Any, ...]:
    """A step of gradient descent on both, from one pass."""
    (loss, aux), grads = jax.value_and_grad(reconstruction, argnums=(0, 1), has_aux=True)(encoder, decoder, x)
    return (*descend((encoder, decoder), grads, RATE), loss, aux)


def one_by_one(encoder: jax.Array, decoder: jax.Array, x: jax.Array) -> tuple[Any, ...]:
    """The same step, each argument's gradient by itself, and loss and auxiliary results by themselves."""
    of_encoder, _ = jax.grad(reconstruction, argnums=0, has_aux=True)(encoder, decoder, x)
    of_decoder, _ = jax.grad(reconstruction, argnums=1, has_aux=True)(encoder, decoder, x)
    loss, aux = reconstruction(encoder, decoder, x)
    return (*descend((encoder, decoder), (of_encoder, of_decoder), RATE), loss, aux)


def two_arguments(size: Size) -> Computation:
    """Encoder and decoder trained together, donated both."""
    draw = drawing()
    shape = (size.layers, size.width, size.width)
    encoder, decoder = (size.width**-0.5 * draw(shape) for _ in range(2))
    return Computation(
        subject=jax.jit(together, donate_argnums=(0, 1)),
        reference=jax.jit(one_by_one, donate_argnums=(0, 1)),
        args=jax.device_put((encoder, decoder, draw((size.batch, size.width)))),
        next_args=lambda result, args: (result[0], result[1], args[2]),
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        # Each layer of both: forward, gradient of the kernel, gradient of the input.
        analytic_flops=3 * 2 * size.layers * 2 * size.batch * size.width**2,
    )


def claims() -> tuple[Claim, ...]:
    """What ``argnums`` over both gives, on any hardware.

    Of 2 x layers, a ``grad`` of the encoder needs 5 products for each pair of layers (the decoder's kernels get no
    gradient), one of the decoder 4, the forward pass 2; together it is 6.
    """
    return (
        equal("matmul_flops", to="analytic_flops", why="one forward, one backward pass through both"),
        at_most(0.56, "matmul_flops", why="6 products in the place of 11: nothing is repeated for the second argument"),
        at_least(1, "donated_bytes", of="one", why="both arguments are donated"),
        equal("aliased_bytes", to="donated_bytes", why="each takes its new value"),
    )


CASES: tuple[Case, ...] = cases(
    "value_and_grad",
    "gradients-of-two-arguments-together-vs-one-by-one",
    two_arguments,
    ({},),
    claims,
    sizes=SIZES,
)
