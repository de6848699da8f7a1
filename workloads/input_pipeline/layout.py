"""Where the channels of an image lie: last, as XLA's convolutions of any backend take them, or before the pixels.

A program whose convolutions have their channels first, or that turns images around for each of them, asks for
transposes that a compiler has to find a way around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, over_samples, sizes, squared_error

CASES = Family("input_pipeline")

RATE = 0.05
LAST = ("NHWC", "HWIO", "NHWC")
FIRST = ("NCHW", "OIHW", "NCHW")

SIZES = sizes(
    batch=(8, 128),
    side=(16, 56),
    channels=(16, 128),
    layers=(3, 6),
    dtype=("float32", "bfloat16"),
    tolerance=(1e-4, 5e-2),
)
"""Extents of a stack of 3 x 3 convolutions over images [batch, side, side, channels]."""

Network = Callable[[Tree, jax.Array], jax.Array]


def step_flops(size: Extent) -> int:
    """Three times each layer, but for the gradient of the images."""
    layer = 2 * size.batch * size.side**2 * 9 * size.channels**2
    return (3 * size.layers - 1) * layer


def convolved(x: jax.Array, kernel: jax.Array, numbers: tuple[str, str, str]) -> jax.Array:
    """A convolution that keeps the extents of its images."""
    return jax.lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), "SAME", dimension_numbers=numbers)


def channels_last(kernels: list[jax.Array], x: jax.Array) -> jax.Array:
    """Convolve as the images lie: kernels [3, 3, channels, channels], x [batch, side, side, channels]."""
    for kernel in kernels:
        x = jnp.tanh(convolved(x, kernel, LAST))
    return x


def channels_first(kernels: list[jax.Array], x: jax.Array) -> jax.Array:
    """The same with channels before pixels: images turned around once, on each side, and every kernel."""
    x = x.transpose(0, 3, 1, 2)
    for kernel in kernels:
        x = jnp.tanh(convolved(x, kernel.transpose(3, 2, 0, 1), FIRST))
    return x.transpose(0, 2, 3, 1)


def turned_for_each(kernels: list[jax.Array], x: jax.Array) -> jax.Array:
    """Channels last between the layers, and first in each of them: as layers of two frameworks are put together."""
    for kernel in kernels:
        inner = convolved(x.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1), FIRST)
        x = jnp.tanh(inner.transpose(0, 2, 3, 1))
    return x


def train_step(network: Network, dtype: str) -> Callable[..., Any]:
    """One step of gradient descent, the kernels in and out."""

    def step(kernels: Tree, images: jax.Array, targets: jax.Array) -> tuple[Tree, jax.Array]:
        def loss_of(kernels: Tree) -> jax.Array:
            return squared_error(network(kernels, images.astype(dtype)).astype(jnp.float32), targets)

        loss, grads = jax.value_and_grad(loss_of)(kernels)
        return descend(kernels, grads, RATE), loss

    return step


def compared(size: Extent, reference: Network) -> Computation:
    """Channels last throughout, against a network that turns something around."""
    draw = drawing()
    shape = (size.batch, size.side, size.side, size.channels)
    scale = (9 * size.channels) ** -0.5
    kernels = [scale * draw((3, 3, size.channels, size.channels)) for _ in range(size.layers)]
    args = jax.device_put((kernels, draw(shape), draw(shape)))
    return Computation(
        subject=jax.jit(train_step(channels_last, size.dtype), donate_argnums=0),
        reference=jax.jit(train_step(reference, size.dtype), donate_argnums=0),
        args=args,
        grow=over_samples(args, 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch, unit="images"),
        analytic_flops=step_flops(size),
        rtol=size.tolerance,
        claims=[
            claim("matmul_flops == analytic_flops", "one forward pass, one backward pass"),
            claim("matmul_flops == reference", "the order of the axes changes no work"),
            claim("stablehlo_ops <= 0.9 * reference", "nothing is transposed"),
        ],
    )


@CASES.workload("input-images-in-nhwc-vs-in-nchw", sizes=SIZES)
def last(size: Extent) -> Computation:
    """Channels last, against channels first in every layer."""
    return compared(size, channels_first)
