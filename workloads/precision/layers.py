"""What the cases of precision have in common: sizes, data, casts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate import Size
from workloads.parts import Tree, drawing, mlp_params

HIGHEST = jax.lax.Precision.HIGHEST
"""Products in full float32: what is asked for where nothing is said is TF32 on some GPUs, bfloat16 on TPUs."""

NARROW_RTOL = 2e-2
"""bfloat16 has 8 bits; a compiler may keep more of them on one side than on the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A multi-layer perceptron [width, width] x layers, and the samples of one call."""

    batch: int  # samples
    width: int  # numbers of each layer
    layers: int  # of the perceptron
    parts: int  # micro-batches that a sum of gradients has

    @property
    def layer_flops(self) -> int:
        """One product of all samples and a kernel."""
        return 2 * self.batch * self.width * self.width

    @property
    def step_flops(self) -> int:
        """Per layer: forward, gradient of the kernel, gradient of the input (which the first layer does not need)."""
        return (3 * self.layers - 1) * self.layer_flops


SIZES: Mapping[Size, Extent] = {
    "small": Extent(batch=64, width=128, layers=3, parts=128),
    "full": Extent(batch=4096, width=4096, layers=4, parts=128),
}


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
