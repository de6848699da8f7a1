"""Gradients of several arguments: ``argnums`` shares the passes, a ``grad`` for each argument repeats them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, over_samples, squared_error
from workloads.value_and_grad.network import RATE, SIZES

CASES = Family("value_and_grad")


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


@CASES.workload("gradients-of-two-arguments-together-vs-one-by-one", sizes=SIZES)
def two_arguments(size: Extent) -> Computation:
    """Encoder and decoder trained together, donated both."""
    draw = drawing()
    shape = (size.layers, size.width, size.width)
    encoder, decoder = (size.width**-0.5 * draw(shape) for _ in range(2))
    args = jax.device_put((encoder, decoder, draw((size.batch, size.width))))
    return Computation(
        subject=jax.jit(together, donate_argnums=(0, 1)),
        reference=jax.jit(one_by_one, donate_argnums=(0, 1)),
        args=args,
        grow=over_samples(args, 2),
        carry=(0, 1),
        batch=Batch(argument=2, size=size.batch),
        # Each layer of both: forward, gradient of the kernel, gradient of the input.
        analytic_flops=3 * 2 * size.layers * 2 * size.batch * size.width**2,
        claims=[
            claim("matmul_flops == analytic_flops", "one forward, one backward pass through both"),
            claim(
                "matmul_flops <= 0.56 * reference",
                "6 products in the place of 11: nothing is repeated for the second argument",
            ),
            claim("donated_bytes >= 1", "both arguments are donated"),
            claim("aliased_bytes >= donated_bytes", "each takes its new value"),
        ],
    )
