"""Inputs of a seed, by NumPy alone: the numbers that ``standalone.py`` draws, too."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgate.ext.repro.model import ArrayOf


def draw(seat: int, array: ArrayOf, seed: int = 1) -> np.ndarray[Any, Any]:
    """Floats scaled by their fan-in, whole numbers below 8.

    Args:
        seat: Which argument it is: the same one gets the same numbers in every program.
        array: Its type and shape.
        seed: The file's own is 1.
    """
    random, kind = np.random.default_rng((seed, seat)), jnp.dtype(array.dtype)
    if jnp.issubdtype(kind, jnp.inexact):
        fan_in = max(array.shape[-2] if len(array.shape) > 1 else 1, 1)
        return np.asarray(random.standard_normal(array.shape) * fan_in**-0.5).astype(kind)
    return np.asarray(random.integers(0, 2 if kind.itemsize == 1 else 8, array.shape)).astype(kind)
