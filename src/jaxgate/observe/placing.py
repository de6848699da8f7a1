"""Arguments to the host and back, for a duel in a fresh process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from jaxgate.observe.signature import to_host
from jaxgate.observe.surroundings import SETTINGS

WEAK = "weak"
ARRAY = "array"


def settings() -> dict[str, Any]:
    """The JAX settings that change programs, as they are now: a fresh process must have the same."""
    found = {name: getattr(jax.config, name, None) for name in SETTINGS}
    return {name: value for name, value in found.items() if isinstance(value, (bool, int, float, str))}


def apply_settings(found: Mapping[str, Any]) -> None:
    """Set JAX as the other process had it."""
    for name, value in found.items():
        jax.config.update(name, value)


@contextmanager
def settings_of(found: Mapping[str, Any]) -> Iterator[None]:
    """Have JAX for a while as it was; afterwards as it is now, unset values too.

    Args:
        found: What ``all_settings`` gave then.
    """
    here = all_settings()
    _change(here, found)
    try:
        yield
    finally:
        _change(all_settings(), here)


def all_settings() -> dict[str, Any]:
    """Every JAX setting that changes programs, as it is now; an unset one is ``None``."""
    return {name: getattr(jax.config, name) for name in SETTINGS if hasattr(jax.config, name)}


def _change(here: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if here.get(name) != value:
            jax.config.update(name, value)


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
