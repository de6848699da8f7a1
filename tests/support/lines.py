"""The release line of the jax that runs these tests. Imports no JAX."""

from __future__ import annotations

from importlib.metadata import version

from jaxgate.model.machine import release_line


def line_here() -> str:
    """Its first two numbers, as they stand in the names of folders."""
    return release_line(version("jax"))
