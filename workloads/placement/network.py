"""What all cases of placement compute: a perceptron on a batch, as large as moving its arrays is worth looking at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from jaxgate import Size
from workloads.parts import Tree, descend, drawing, mlp, mlp_params, squared_error

LEARNING_RATE = 0.01
LAYERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How large the network and its batch are."""

    batch: int  # samples in one call, a multiple of eight
    width: int  # features
    rtol: float = 1e-4  # between subject and reference; accelerators round the operands of a product to fewer bits

    @property
    def forward_flops(self) -> int:
        """One product for each layer."""
        return 2 * LAYERS * self.batch * self.width**2

    @property
    def step_flops(self) -> int:
        """And two more on the way back; nobody asks for the gradient of the samples."""
        return 3 * self.forward_flops - 2 * self.batch * self.width**2


SIZES: Mapping[Size, Extent] = {"small": Extent(batch=64, width=64), "full": Extent(batch=8192, width=4096, rtol=1e-2)}


def draw_inputs(size: Extent) -> tuple[Tree, Any, Any]:
    """Draw parameters, x and y [batch, width]; NumPy arrays, which are nowhere yet."""
    draw = drawing()
    shape = size.batch, size.width
    return mlp_params(draw, size.width, LAYERS), draw(shape), draw(shape)


def train_step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """One step of gradient descent: the next parameters and the loss."""
    loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
    return descend(params, grads, LEARNING_RATE), loss
