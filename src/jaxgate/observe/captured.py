"""Which variable of the project a captured constant comes from: a likely origin, by shape and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import FunctionType
from typing import Any

import jax
import numpy as np

from jaxgate.observe.source import project_functions
from jaxgate.observe.structure import Constant


@dataclass(frozen=True, slots=True)
class Captured:
    """An array that a function sees without being given it.

    Attributes:
        name: The variable, with the path inside it.
        owner: The function.
    """

    name: str
    owner: str
    shape: tuple[int, ...]
    nbytes: int


def describe_constants(constants: Sequence[Constant], *functions: Callable[..., Any]) -> tuple[str, ...]:
    """One line per constant: the variable that it likely comes from, its type and size, where it is used.

    Args:
        constants: The large constants of a program.
        functions: The subject, and whatever else may have closed over them.
    """
    if not constants:
        return ()
    arrays = [found for function in project_functions(*functions) for found in _arrays(function)]
    lines = []
    for constant in sorted(constants, key=lambda constant: -constant.nbytes):
        alike = {array for array in arrays if (array.shape, array.nbytes) == (constant.shape, constant.nbytes)}
        names = sorted(f"`{array.name}` captured in {array.owner}" for array in alike)
        origin = f"likely {' or '.join(names[:2])}: " if names else ""
        lines.append(f"{origin}{constant.text}")
    return tuple(lines)


def _arrays(function: FunctionType) -> Iterator[Captured]:
    code = function.__code__
    values = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue  # not filled yet
    for name, value in values.items():
        for path, leaf in jax.tree_util.tree_leaves_with_path(_content(value)):
            if isinstance(leaf, (jax.Array, np.ndarray)) and prod(leaf.shape) > 1:
                place = f"{name}{jax.tree_util.keystr(path)}"
                yield Captured(place, function.__qualname__.rpartition(".")[2], tuple(leaf.shape), leaf.nbytes)


def _content(value: Any) -> Any:
    """What a variable holds: an object of a class that is no pytree is opened one level."""
    if isinstance(value, (jax.Array, np.ndarray, dict, list, tuple)) or callable(value):
        return value
    return getattr(value, "__dict__", None) or value
