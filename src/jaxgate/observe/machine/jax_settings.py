"""JAX's settings that change programs: read, carried to another process, had again for a while, refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax

from jaxgate.model import InvalidCaseError

SETTINGS = (
    "jax_debug_nans",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_disable_jit",
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
    "jax_optimization_level",
    "jax_threefry_partitionable",
    "jax_use_shardy_partitioner",
    "jax_use_simplified_jaxpr_constants",
)

_UNFIT = {
    "jax_disable_jit": "nothing is compiled, so that no retrace and no launch would show",
    "jax_debug_nans": "JAX reads every result back and ignores donation",
    "jax_debug_infs": "JAX reads every result back",
}
"""Settings for finding faults, which projects leave on for all of their tests."""


def refuse_settings() -> None:
    """Refuse to measure under settings with which JAX runs other programs than the ones to be judged.

    Raises:
        InvalidCaseError: If nothing is compiled, or every result is read back and donation is left out.
    """
    for name, what in _UNFIT.items():
        if getattr(jax.config, name, False):
            raise InvalidCaseError(
                "looking at JAX's settings", f"expected {name} off, found it on: {what}; switch it off for this test"
            )


def settings() -> dict[str, Any]:
    """The JAX settings that change programs, as they are now: a fresh process must have the same."""
    return {name: value for name, value in all_settings().items() if isinstance(value, (bool, int, float, str))}


def apply_settings(found: Mapping[str, Any]) -> None:
    """Set JAX as another process had it, or this one at another time."""
    for name, value in found.items():
        if getattr(jax.config, name, None) != value:
            jax.config.update(name, value)


@contextmanager
def settings_of(found: Mapping[str, Any]) -> Iterator[None]:
    """Have JAX for a while as it was when ``all_settings`` was asked; afterwards as it is now, unset values too."""
    here = all_settings()
    apply_settings(found)
    try:
        yield
    finally:
        apply_settings(here)


def all_settings() -> dict[str, Any]:
    """Every JAX setting that changes programs, as it is now; an unset one is ``None``."""
    return {name: getattr(jax.config, name) for name in SETTINGS if hasattr(jax.config, name)}
