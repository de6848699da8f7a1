"""Images normalised in place: the batch is donated and comes back in the same shape and type."""

from __future__ import annotations

import jax
import numpy as np

from jaxgate.model.computation import Computation

BATCH, SIZE = 8, 32


def normalise(images, mean, scale):
    """Shift and scale each channel."""
    centred = images - mean
    return centred * scale


def build():
    """Make the step and its arguments."""
    random = np.random.default_rng(0)
    images = jax.device_put(random.normal(size=(BATCH, SIZE, SIZE, 3)).astype(np.float32))
    mean = np.full(3, 0.5, np.float32)
    scale = np.full(3, 4.0, np.float32)
    return Computation(
        subject=jax.jit(normalise, donate_argnums=0),
        args=(images, mean, scale),
        next_args=lambda *_: None,  # each step gets a batch of its own
    )
