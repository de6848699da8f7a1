"""Arguments for every call: on the device, never the caller's own buffers where the function donates them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Call = tuple[tuple[Any, ...], dict[str, Any]]


def has_shapes(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether ``jax.ShapeDtypeStruct`` stands for an array among some arguments."""
    leaves = jax.tree.leaves((tuple(args), dict(kwargs)), is_leaf=lambda leaf: isinstance(leaf, Iterator))  # JAX warns
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)


_copy = jax.jit(lambda arrays: [jnp.copy(array) for array in arrays])


def on_device(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """Move host arrays to the device once, so that no timed call pays for it."""

    def move(leaf: Any) -> Any:
        return jax.device_put(leaf) if isinstance(leaf, np.ndarray) else leaf

    return jax.tree.map(move, tuple(args)), jax.tree.map(move, dict(kwargs))


class Feeder:
    """Makes fresh arguments for a function that may consume them.

    Copies keep dtype, weak type, sharding and whether the array is committed to its device: a copy that
    differed in any of these would itself cause a retrace. Committed arrays are copied apart from the
    others, because JAX commits every output of a call that has one committed input.

    Args:
        call: The arguments.
        donates: Whether the function consumes some of them.
        only: Positions of those it consumes among the leaves, where known; the others are never copied.
    """

    def __init__(self, call: Call, *, donates: bool, only: Collection[int] | None = None) -> None:
        self.call = call
        leaves, self._tree = jax.tree.flatten(call)
        self._leaves = leaves
        eaten = range(len(leaves)) if only is None else only
        arrays = [i for i in eaten if donates and isinstance(leaves[i], jax.Array)]
        groups: dict[Any, list[int]] = {}
        for index in arrays:
            leaf = leaves[index]
            groups.setdefault(leaf.sharding if leaf.committed else None, []).append(index)
        self._groups = groups
        self.copies = bool(arrays)

    def fresh(self) -> Call:
        """Arguments whose buffers may be donated; the same ones again where nothing is."""
        if not self.copies:
            return self.call
        leaves = list(self._leaves)
        for indices in self._groups.values():
            for index, copy in zip(indices, _copy([leaves[i] for i in indices]), strict=True):
                leaves[index] = copy
        call: Call = jax.tree.unflatten(self._tree, leaves)
        jax.block_until_ready(call)
        return call
