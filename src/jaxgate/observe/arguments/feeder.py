"""Arguments for every call: on the device, never the caller's own buffers where the function donates them.

Of an array that is spread over processes, each process holds its own parts with their places in the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.signature import to_host

_LONGEST = 24
"""Characters of a value that is written out."""
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

    Copies keep dtype, weak type, sharding and whether the array is committed to its device: a copy that differed in any
    of these would itself cause a retrace. Committed arrays are copied apart from the others, because JAX commits every
    output of a call that has one committed input. ``only`` are positions, among the leaves, of those that the function
    consumes, where known; the others are never copied.
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


Place = tuple[tuple[int, int], ...]
"""Where a part begins and ends, on each axis."""
Values = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """What this process holds of an array of this shape: the parts by their places; copies of one part stand once."""

    shape: tuple[int, ...]
    dtype: Any
    parts: Mapping[Place, Values]
    devices: tuple[int, ...] = ()  # devices of its mesh, in order, by their places among all; empty where it has none
    key: str = ""  # implementation of the random keys whose words it has; empty for numbers


def on_host(leaf: Any) -> Values | Shards:
    """A leaf's values: whole where this process can read all of them, else the parts that it holds."""
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable or leaf.is_fully_replicated:
        return to_host(leaf)
    return parts_of(leaf)


def parts_of(leaf: jax.Array) -> Shards:
    """The parts of an array that this process holds; of random keys their words."""
    key = ""
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        key, leaf = str(jax.random.key_impl(leaf)), jax.random.key_data(leaf)
    all_devices, mesh = jax.devices(), getattr(leaf.sharding, "mesh", None)
    devices = () if mesh is None else tuple(map(all_devices.index, mesh.devices.flatten()))
    parts = {place_of(shard.index, leaf.shape): to_host(shard.data) for shard in leaf.addressable_shards}
    return Shards(
        shape=tuple(leaf.shape), dtype=leaf.dtype, parts=dict(sorted(parts.items())), devices=devices, key=key
    )


def place_of(index: tuple[slice, ...], shape: tuple[int, ...]) -> Place:
    """Where a part lies, with the ends that JAX leaves open."""
    spans = zip(index, shape, strict=True)
    return tuple((span.start or 0, extent if span.stop is None else span.stop) for span, extent in spans)


def pieces(values: Values | Shards) -> list[tuple[Place, Values]]:
    """The parts of an array with their places; a whole one is a single part, at no place."""
    return list(values.parts.items()) if isinstance(values, Shards) else [((), values)]


def side_by_side(
    ours: Values | Shards, theirs: Values | Shards, *, stage: str, what: str
) -> Iterator[tuple[Place, Values, Values]]:
    """The parts of two arrays of one shape that this process holds of both, so that all ranks together see every element.

    Raises:
        InvalidCaseError: If both are spread over processes, in different ways: elements would be compared nowhere.
    """
    if isinstance(ours, Shards) and isinstance(theirs, Shards) and set(ours.parts) != set(theirs.parts):
        raise InvalidCaseError(
            stage,
            f"{what}: subject and reference are spread over the processes in different ways, so that no process can "
            "compare them whole; give both the same sharding, or return it replicated",
        )
    for place, part in pieces(ours):
        if isinstance(theirs, Shards):
            for spot, other in pieces(theirs):
                if not place or spot == place:
                    yield spot, part if place else part[_slices(spot)], other
        else:
            yield place, part, theirs[_slices(place)] if place else theirs


def _slices(place: Place) -> tuple[slice, ...]:
    return tuple(slice(begin, end) for begin, end in place)


def read_value(leaf: Any) -> str:
    """The text of a number; of an array a short hash of its values."""
    if not isinstance(leaf, (jax.Array, np.ndarray)):
        return repr(leaf)[:_LONGEST]
    return str(to_host(leaf).reshape(-1)[0])[:_LONGEST] if leaf.size == 1 else inputs_fingerprint((leaf,), {})[:8]


def inputs_fingerprint(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Hash the values of all arguments: a loop bound of 3 or of 3000 is the same program."""
    state = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree_util.tree_leaves((tuple(args), dict(sorted(kwargs.items())))):
        if isinstance(leaf, (jax.Array, np.ndarray)):
            for place, values in pieces(on_host(leaf)):
                state.update(f"{values.dtype}{values.shape}{place or ''}".encode())
                state.update(np.ascontiguousarray(values).view(np.uint8).data if values.size else b"")
        elif not isinstance(leaf, jax.ShapeDtypeStruct):  # which has no value
            text = repr(leaf).encode()
            state.update(b"P" + len(text).to_bytes(8, "little") + text)
    return state.hexdigest()
