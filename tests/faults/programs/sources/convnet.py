"""A small convolutional network: the gradient of its loss; images are batch, height, width, channels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.computation import Computation

BATCH, SIZE, CHANNELS = 4, 16, 8


def convolve(x, kernel):
    """Slide a kernel over images, keeping their size."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def loss_of(params, images, labels):
    """Average the cross entropy."""
    x = jax.nn.relu(convolve(images, params["first"]))
    x = jax.nn.relu(convolve(x, params["second"]))
    logits = jnp.mean(x, axis=(1, 2)) @ params["head"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -jnp.mean(chosen)


def grads_of(params, images, labels):
    """Give the loss and its gradient."""
    return jax.value_and_grad(loss_of)(params, images, labels)


def build():
    """Make the gradient and its arguments."""
    random = np.random.default_rng(0)
    params = {
        "first": random.normal(0, 0.1, (3, 3, 3, CHANNELS)).astype(np.float32),
        "second": random.normal(0, 0.1, (3, 3, CHANNELS, CHANNELS)).astype(np.float32),
        "head": random.normal(0, 0.1, (CHANNELS, 10)).astype(np.float32),
    }
    images = random.normal(size=(BATCH, SIZE, SIZE, 3)).astype(np.float32)
    labels = random.integers(0, 10, BATCH).astype(np.int32)
    return Computation(subject=jax.jit(grads_of), args=(params, images, labels))
