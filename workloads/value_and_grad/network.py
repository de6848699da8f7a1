"""What the family's cases have in common: a classifier, its sizes and data, its losses with auxiliary results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from workloads.parts import Extent, Tree, drawing, sizes

RATE = 0.1  # of plain gradient descent
MOMENTUM = 0.9  # of the running statistics
TOLERANCE = 1e-3
"""Relative and absolute, of subject and reference: with products in fewer bits a few of thousands of samples may change sides in a tie."""

Loss = Callable[..., tuple[jax.Array, Tree]]
"""A loss with auxiliary results: (params, running, x, labels) to (loss, aux)."""

SIZES = sizes(batch=(64, 4096), width=(64, 4096), layers=(4, 8), classes=(16, 1024))
"""A classifier with ``layers`` square layers, and the samples of one step, on all devices together."""


def forward_flops(size: Extent) -> int:
    """Of one forward pass."""
    return 2 * size.batch * size.width * (size.layers * size.width + size.classes)


def make_state(size: Extent) -> Tree:
    """Draw parameters ([layers, width, width], [width, classes]) and running statistics [layers, width]; NumPy arrays."""
    draw = drawing()
    scale = np.float32(size.width**-0.5)
    kernels = scale * draw((size.layers, size.width, size.width))
    params = {"kernels": kernels, "head": scale * draw((size.width, size.classes))}
    lines = (size.layers, size.width)
    return params, {"mean": np.zeros(lines, np.float32), "square": np.ones(lines, np.float32)}


def make_batch(size: Extent) -> tuple[Any, Any]:
    """Draw inputs [batch, width] and integer labels [batch]; NumPy arrays."""
    labels = np.random.default_rng(1).integers(size.classes, size=size.batch, dtype=np.int32)
    return drawing(2)((size.batch, size.width)), labels


def measured(logits: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """Loss and accuracy of logits [batch, classes]."""
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return loss, {"accuracy": (logits.argmax(-1) == labels).mean()}


def plain_loss(params: Tree, running: Tree, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """A loss whose auxiliary result is the accuracy; its layers are one loop."""
    hidden, _ = jax.lax.scan(lambda h, kernel: (jnp.tanh(h @ kernel), None), x, params["kernels"])
    loss, aux = measured(hidden @ params["head"], labels)
    return loss, {**aux, "running": running}


def normalised_loss(axis: str | None = None) -> Loss:
    """A loss with batch normalisation: the new running statistics are an auxiliary result too.

    Args:
        axis: Mesh axis over which the batch is divided, where the function sees a part of it.
    """

    def layer(hidden: jax.Array, kernel: jax.Array) -> tuple[jax.Array, Tree]:
        hidden = hidden @ kernel
        seen = {"mean": hidden.mean(0), "square": (hidden**2).mean(0)}
        seen = jax.lax.pmean(seen, axis) if axis else seen
        deviation = jnp.sqrt(seen["square"] - seen["mean"] ** 2 + 1e-3)
        return jnp.tanh((hidden - seen["mean"]) / deviation), seen

    def loss_of(params: Tree, running: Tree, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
        hidden, seen = jax.lax.scan(layer, x, params["kernels"])
        loss, aux = measured(hidden @ params["head"], labels)
        new = jax.tree.map(lambda old, now: MOMENTUM * old + (1 - MOMENTUM) * now, running, seen)
        return loss, {**aux, "running": new}

    return loss_of
