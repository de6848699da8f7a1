"""Programs as their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxgate.ext.repro import flat, modules


def text_of(function: Callable[..., Any], *args: Any) -> str:
    """A prepared program."""
    lowered = jax.jit(function).lower(*args)
    return flat.prepared(modules.text_of(lowered.compiler_ir("stablehlo")), list(range(len(args))))


def readable(payload):
    """The text of what ``modules.portable`` gave, locations with it."""
    found = modules.bindings().deserialize_portable_artifact(payload, modules.context())
    return str(found.operation.get_asm(enable_debug_info=True))
