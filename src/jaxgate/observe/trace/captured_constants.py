"""Which variable of the project a captured constant comes from: a likely origin, by shape, size and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import FunctionType
from typing import Any

import jax
import numpy as np

from jaxgate.observe.arguments.signature import to_host
from jaxgate.observe.trace.source import project_functions, variables
from jaxgate.observe.trace.stablehlo import Constant, content_hash

_ARRAYS = (jax.Array, np.ndarray)


@dataclass(frozen=True, slots=True)
class Captured:
    """An array that a function (its owner) sees without being given it, by its variable and the path inside."""

    name: str
    owner: str
    array: Any

    def holds(self, constant: Constant) -> bool:
        """Whether it has the shape and the size of a constant, and its values where those can be read."""
        if (tuple(self.array.shape), self.array.nbytes) != (constant.shape, constant.nbytes):
            return False
        if isinstance(self.array, jax.Array) and self.array.is_deleted():
            return False
        return constant.content in (None, content_hash(to_host(self.array).tobytes()))


def describe_constants(constants: Sequence[Constant], *reaching: object) -> tuple[str, ...]:
    """One line per constant: the variable that it likely comes from, its type and size, where it is used.

    The subject's functions may have closed over them, those that build it, and those of the objects that it is given.
    """
    if not constants:
        return ()
    arrays = [found for function in project_functions(*reaching) for found in _arrays(function)]
    lines = []
    for constant in sorted(constants, key=lambda constant: -constant.nbytes):
        names = sorted({f"`{array.name}` captured in {array.owner}" for array in arrays if array.holds(constant)})
        origin = f"likely {' or '.join(names[:2])}: " if names else ""
        lines.append(f"{origin}{constant.text}")
    return tuple(lines)


def _arrays(function: FunctionType) -> Iterator[Captured]:
    owner = function.__qualname__.rpartition(".")[2]
    for name, value in (inside for one in variables(function) for inside in _opened(*one)):
        try:
            leaves = jax.tree_util.tree_leaves_with_path(value)
        except Exception:  # noqa: BLE001, S112 - no tree: a dictionary whose keys have no order, somebody's own class
            continue
        for path, leaf in leaves:
            if isinstance(leaf, _ARRAYS) and prod(leaf.shape) > 1:
                yield Captured(f"{name}{jax.tree_util.keystr(path)}", owner, leaf)


def _opened(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a variable holds: an object of a class that is no pytree is opened one level."""
    inside = getattr(value, "__dict__", None)
    if inside and not isinstance(value, _ARRAYS) and jax.tree_util.all_leaves([value]):
        yield from ((f"{name}.{inner}", held) for inner, held in inside.items())
    else:
        yield name, value
