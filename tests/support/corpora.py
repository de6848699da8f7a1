"""Large sets of planted mistakes: how many a run tries, and how their programs are compiled."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

EVERY = "ALL_PLANTS"
"""The variable that has all of them tried, not a tenth: each takes a second or more."""


def a_tenth(mistakes: Sequence[Any]) -> list[Any]:
    """Parameters of a test: every tenth one, the others skipped with the reason; all where somebody asks for them."""
    left = pytest.mark.skipif(not os.environ.get(EVERY), reason=f"a tenth of the plants are run; all with {EVERY}=1")
    whole = [one if hasattr(one, "marks") else pytest.param(one, id=str(one)) for one in mistakes]
    return [
        one if place % 10 == 0 else pytest.param(*one.values, marks=(*one.marks, left), id=one.id)
        for place, one in enumerate(whole)
    ]


@contextlib.contextmanager
def compiled_quickly(cache: Path | None = None) -> Iterator[None]:
    """Let JAX spend little on machine code, which no fact speaks of, and remember executables in a folder if there is one.

    It halves the time of a compile; what XLA's passes over the program do, and with them every fact, stays the same.
    """
    wanted = {
        "jax_disable_most_optimizations": True,
        "jax_compilation_cache_dir": None if cache is None else str(cache),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: jax.config.values[name] for name in wanted}
    _configure(wanted)
    try:
        yield
    finally:
        _configure(before)


def _configure(settings: dict[str, object]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # JAX looks for the folder once
