"""The private names of JAX that jaxgate reads, all of them. ``tests/test_observe_private.py`` tells when one breaks."""

from __future__ import annotations

import re
from typing import Any

TRACING_LOGGER = "jax._src.interpreters.partial_eval"
"""Where ``jax.explain_cache_misses`` logs why JAX traced. Were it renamed, causes would be missing, counts not."""
CACHE_LOGGERS = ("jax._src.compiler", "jax._src.compilation_cache")
"""Where the same switch logs what the persistent cache did."""


def compiler_options(lowered: Any) -> tuple[tuple[str, str], ...] | None:
    """Read the compiler options that a function was jitted with; they are invisible in StableHLO.

    Args:
        lowered: A ``jax.stages.Lowered``.

    Returns:
        Sorted name and value pairs, or ``None`` if this release keeps them elsewhere. ``None`` costs the
        case its identity verdict; it never passes for "no options".
    """
    try:
        options = lowered._lowering._compiler_options_kvs  # noqa: SLF001 - what this file is for
        return tuple(sorted((str(name), str(value)) for name, value in options))
    except (AttributeError, TypeError, ValueError):
        return None


def argument_leaf_names(traced: Any) -> frozenset[str]:
    """Read which arguments JAX traced, static ones left out; for messages only.

    Args:
        traced: A ``jax.stages.Traced``.

    Returns:
        Names of arguments; empty if this release keeps them elsewhere.
    """
    info = getattr(traced.jaxpr.jaxpr, "debug_info", None)
    leaves = [re.match(r"\w+", str(name)) for name in getattr(info, "arg_names", None) or ()]
    return frozenset(match.group() for match in leaves if match)
