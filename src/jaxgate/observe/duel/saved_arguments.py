"""Arguments to the host and back, for a duel in a fresh process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxgate.observe.arguments import to_host

WEAK = "weak"
ARRAY = "array"


def to_files(leaves: Sequence[Any]) -> tuple[list[np.ndarray[Any, Any]], list[str]]:
    """Bring arguments to the host, with the kind of each: ``array``, ``weak``, or a random key's implementation."""
    kinds = []
    for leaf in leaves:
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            kinds.append(str(jax.random.key_impl(leaf)))
        else:
            # A weak array with a shape is no Python number; compiled programs take it as an array.
            weak = not hasattr(leaf, "dtype") or bool(getattr(leaf, "weak_type", False) and leaf.ndim == 0)
            kinds.append(WEAK if weak else ARRAY)
    return [to_host(leaf) for leaf in leaves], kinds


def restore(arrays: Sequence[np.ndarray[Any, Any]], kinds: Sequence[str]) -> list[Any]:
    """Put them back on the device as they were."""
    leaves: list[Any] = []
    for array, kind in zip(arrays, kinds, strict=True):
        if kind == ARRAY:
            leaves.append(jax.device_put(array))
        elif kind == WEAK:
            leaves.append(jax.device_put(array.item()))
        else:
            leaves.append(jax.random.wrap_key_data(jax.device_put(array), impl=kind))
    return leaves
