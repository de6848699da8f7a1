"""Surroundings that several tests of observations need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from support.paths import REPOSITORY


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are shown relative to the working folder."""
    monkeypatch.chdir(REPOSITORY)


@pytest.fixture
def persistent_cache(tmp_path: Path) -> Iterator[Path]:
    """JAX's cache on disk, switched on for everything, in an empty folder."""
    from jax.experimental.compilation_cache import compilation_cache

    settings = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in settings}

    def switch(values: dict[str, object]) -> None:
        compilation_cache.reset_cache()
        for name, value in values.items():
            jax.config.update(name, value)

    switch(settings)
    yield tmp_path
    switch(before)
    compilation_cache.reset_cache()
