"""What takes long: how much of it a run tries, and how programs of planted mistakes are compiled."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

EVERY = "ALL_TESTS"
"""The variable that has all of it tried, as every night."""
nightly = pytest.mark.skipif(
    not os.environ.get(EVERY), reason=f"one like it is run, and this is one of the longest; with {EVERY}=1"
)
"""For tests that start several processes, where a shorter one asks nearly the same."""


def one_of(mistakes: Sequence[Any], count: int = 10) -> list[Any]:
    """Parameters of a test: one of so many, the others skipped with the reason; all where somebody asks for them."""
    left = pytest.mark.skipif(not os.environ.get(EVERY), reason=f"one of {count} like it is run; all with {EVERY}=1")
    whole = [one if hasattr(one, "marks") else pytest.param(one, id=str(one)) for one in mistakes]
    return [
        one if place % count == 0 else pytest.param(*one.values, marks=(*one.marks, left), id=one.id)
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
