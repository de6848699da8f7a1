"""What the cases of precision have in common: sizes, data, casts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from workloads.parts import Extent, Tree, drawing, mlp_params, sizes

HIGHEST = jax.lax.Precision.HIGHEST
"""Products in full float32: what is asked for where nothing is said is TF32 on some GPUs, bfloat16 on TPUs."""

NARROW_RTOL = 2e-2
"""bfloat16 has 8 bits; a compiler may keep more of them on one side than on the other."""

SIZES = sizes(
    batch=(64, 4096),  # samples
    width=(128, 4096),  # numbers of each layer
    layers=(3, 4),  # of the perceptron
    parts=128,  # micro-batches that a sum of gradients has
)
"""A multi-layer perceptron [width, width] x layers, and the samples of one call."""


def layer_flops(size: Extent) -> int:
    """One product of all samples and a kernel."""
    return 2 * size.batch * size.width * size.width


def step_flops(size: Extent) -> int:
    """Per layer: forward, gradient of the kernel, gradient of the input (which the first layer does not need)."""
    return (3 * size.layers - 1) * layer_flops(size)


def cast(tree: Tree, dtype: Any) -> Tree:
    """All arrays of a tree in one type."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


def make_params(size: Extent, dtype: Any = jnp.float32) -> Tree:
    """Draw the perceptron."""
    return jax.device_put(cast(mlp_params(drawing(), size.width, size.layers), dtype))


def make_samples(size: Extent, dtype: Any = jnp.float32, *, count: int = 1) -> Any:
    """Draw samples, arrays [batch, width]; several of them as a tuple."""
    draw = drawing(1)
    drawn = tuple(draw((size.batch, size.width)).astype(dtype) for _ in range(count))
    return jax.device_put(drawn if count > 1 else drawn[0])
