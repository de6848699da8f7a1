"""What all cases of placement compute: a perceptron on a batch, as large as moving its arrays is worth looking at."""

from __future__ import annotations

from typing import Any

import jax

from workloads.parts import Extent, Tree, descend, drawing, mlp, mlp_params, sizes, squared_error

LEARNING_RATE = 0.01
LAYERS = 2


SIZES = sizes(
    batch=(64, 8192),  # samples in one call, a multiple of eight
    width=(64, 4096),  # features
    rtol=(1e-4, 1e-2),
)
"""How large the network and its batch are."""


def draw_inputs(size: Extent) -> tuple[Tree, Any, Any]:
    """Draw parameters, x and y [batch, width]; NumPy arrays, which are nowhere yet."""
    draw = drawing()
    shape = size.batch, size.width
    return mlp_params(draw, size.width, LAYERS), draw(shape), draw(shape)


def train_step(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """One step of gradient descent: the next parameters and the loss."""
    loss, grads = jax.value_and_grad(lambda p: squared_error(mlp(p, x), y))(params)
    return descend(params, grads, LEARNING_RATE), loss
