"""JAX's settings, which one program makes and the next must not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def settings_restored() -> Iterator[None]:
    """Afterwards every setting of JAX is what it was."""
    before = dict(jax.config.values)
    try:
        yield
    finally:
        for name, value in before.items():
            if jax.config.values[name] != value:
                jax.config.update(name, value)
