"""The arguments of a call as JAX sees them, and what made two calls differ."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from jaxgate.model.measurement import MAX_NAMED, Argument, Leaf
from jaxgate.model.words import shortlist
from jaxgate.observe.arguments.static import static_change

STATIC = "static "
"""What the text of a static value begins with."""
UNKNOWN = "no argument differs in shape, dtype, weak type or placement: cause unknown"


@dataclass(frozen=True, slots=True)
class ArgumentKey:
    """What decides whether a call with this leaf hits JAX's caches."""

    path: str
    aval: str
    weak_type: bool
    sharding: str
    committed: bool

    def __str__(self) -> str:
        """The aval with its weak type; placement is shown only where it differs."""
        return f"{self.aval}{' (weak type)' if self.weak_type else ''}"


def argument_names(function: Callable[..., Any], count: int) -> tuple[str, ...]:
    """Name the positional arguments as the function's author did; ``args[i]`` where that cannot be known."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return tuple(names[i] if i < len(names) else f"args[{i}]" for i in range(count))


def leaves_with_paths(args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, Any]]:
    """Flatten a call's arguments, each leaf with its path for people."""
    found = []
    for name, value in [*zip(names, args, strict=True), *kwargs.items()]:
        leaves = jax.tree_util.tree_leaves_with_path(value)
        found += [(name + jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
    return found


def argument_keys(
    args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str], static: Collection[str] = ()
) -> tuple[ArgumentKey, ...]:
    """Describe every leaf of a call; ``names`` name ``args``, the values of ``static`` ones are part of the program."""
    fixed = [(name, value) for name, value in [*zip(names, args, strict=True), *kwargs.items()] if name in static]
    moving = [(name, value) for name, value in zip(names, args, strict=True) if name not in static]
    leaves = leaves_with_paths(
        [value for _, value in moving],
        {name: value for name, value in kwargs.items() if name not in static},
        [name for name, _ in moving],
    )
    values = tuple(ArgumentKey(name, f"{STATIC}{value!r}", False, "", False) for name, value in fixed)
    return tuple(_key_of(path, leaf) for path, leaf in leaves) + values


def _key_of(path: str, leaf: Any) -> ArgumentKey:
    if isinstance(leaf, jax.Array):
        return ArgumentKey(
            path, short(leaf), bool(getattr(leaf, "weak_type", False)), str(leaf.sharding), bool(leaf.committed)
        )
    if isinstance(leaf, (bool, int, float, complex)):
        return ArgumentKey(path, f"Python {type(leaf).__name__}", True, "", False)
    return ArgumentKey(
        path, short(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else f"{STATIC}{leaf!r}", False, "", False
    )


def short(array: Any) -> str:
    """``float32[8,64]`` for anything with a shape and a dtype."""
    dtype = array.dtype
    name = dtype.name if hasattr(dtype, "name") else str(dtype)
    return f"{name}[{','.join(map(str, array.shape))}]"


def explain(before: Sequence[ArgumentKey], after: Sequence[ArgumentKey]) -> str:
    """Say which arguments differ between two calls and how: ``state['w']: bfloat16[8] -> float32[8]``."""
    return difference(before, after) or UNKNOWN


def difference(before: Sequence[ArgumentKey], after: Sequence[ArgumentKey]) -> str:
    """Say which arguments differ between two calls and how; empty if nothing differs."""
    if [seen.path for seen in before] != [seen.path for seen in after]:
        gone = {seen.path for seen in before} ^ {seen.path for seen in after}
        return f"the tree of the arguments changed at {join(sorted(gone))}"
    return join(
        [f"{old.path}: {change}" for old, new in zip(before, after, strict=True) if (change := _change(old, new))]
    )


def _change(old: ArgumentKey, new: ArgumentKey) -> str:
    if old.aval != new.aval and old.aval.startswith(STATIC) and new.aval.startswith(STATIC):
        return static_change(old.aval.removeprefix(STATIC), new.aval.removeprefix(STATIC))
    if (old.aval, old.weak_type) != (new.aval, new.weak_type):
        return f"{old} → {new}"
    arrays = old.sharding and new.sharding  # NumPy's have none, and count as uncommitted ones
    if arrays and old.sharding != new.sharding:
        return f"sharding {old.sharding} → {new.sharding}"
    if old.committed != new.committed:
        words = {True: "committed to its device", False: "uncommitted"}
        return f"{words[old.committed]} → {words[new.committed]}"
    return ""


def join(items: Sequence[str]) -> str:
    """Name the first few and count the rest."""
    return shortlist(items, MAX_NAMED, phrases=True)


def read_signature(lowered: jax.stages.Lowered, names: Sequence[str], leaves: Sequence[Any]) -> tuple[Argument, ...]:
    """List the dynamic arguments of a lowered function with sizes and donation.

    Static arguments are absent from its ``args_info``. ``leaves`` are what the call gives to each of the others: an
    array's own sharding says what one device holds.
    """
    positional, keyword = lowered.args_info
    labels = names if len(names) == len(positional) else [f"args[{i}]" for i in range(len(positional))]
    infos = leaves_with_paths(positional, keyword, labels)
    return tuple(
        Argument(
            path=path,
            aval=short(info),
            nbytes=device_bytes(info, leaf.sharding if isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)) else None),
            donated=bool(info.donated),
        )
        for (path, info), leaf in zip(infos, leaves, strict=True)
    )


def read_results(stage: jax.stages.Lowered, shardings: Sequence[Any]) -> tuple[Leaf, ...]:
    """List the arrays that a call returns, with their size on one device, as the compiled program spreads them."""
    found = leaves_with_paths((stage.out_info,), {}, ("result",))
    on_one = shardings if len(shardings) == len(found) else [None] * len(found)
    return tuple(
        Leaf(path=path, aval=short(info), nbytes=device_bytes(info, sharding), donated=False)
        for (path, info), sharding in zip(found, on_one, strict=True)
    )


def place_signature(
    signature: Sequence[Argument], lowered: jax.stages.Lowered, shardings: Sequence[Any]
) -> tuple[Argument, ...]:
    """Give each argument the bytes that it has on one device as the compiled program takes it.

    The program's sharding counts, not the one the argument was given in: JAX moves it there before the call.
    An argument that the program does not use has no place in it, and keeps the bytes that it was given with.
    """
    infos = jax.tree.leaves(lowered.args_info)
    placed = zip(signature, infos, shardings, strict=True)
    return tuple(
        leaf if sharding is None else replace(leaf, nbytes=device_bytes(info, sharding))
        for leaf, info, sharding in placed
    )


def replicated_bytes(lowered: jax.stages.Lowered, shardings: Sequence[Any]) -> int:
    """Bytes of the arguments that a device holds beyond its even share, because others hold them too; 0 on one device."""
    infos = jax.tree.leaves(lowered.args_info)
    placed = [(info, one) for info, one in zip(infos, shardings, strict=True) if one is not None]
    return sum(device_bytes(info, one) - -(-device_bytes(info, None) // one.num_devices) for info, one in placed)


def device_bytes(info: Any, sharding: Any) -> int:
    """Bytes of an array on one device, without what the device adds to fill its tiles; whole if ``sharding`` is ``None``."""
    shape: tuple[int, ...] = tuple(info.shape) if sharding is None else sharding.shard_shape(tuple(info.shape))
    if jax.dtypes.issubdtype(info.dtype, jax.dtypes.extended):
        bits = 8 * int(getattr(info.dtype, "itemsize", 0))  # random keys
    elif info.dtype == jax.dtypes.float0:
        bits = 0  # the tangent of an integer: nothing is stored
    else:
        bits = int(jax.dtypes.itemsize_bits(info.dtype))  # int4: half a byte, which NumPy counts as one
    return int((math.prod(shape) * bits + 7) // 8)


def to_host(leaf: Any) -> np.ndarray[Any, Any]:
    """A leaf's values as NumPy sees them; typed random keys give their words."""
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    # What jaxgate reads for itself is no transfer of the program, even where the project forbids all of them.
    with jax.transfer_guard("allow"):
        if isinstance(leaf, jax.Array) and leaf.sharding.memory_kind == "pinned_host":
            # NumPy would read it in place, and what NumPy looks at can no longer be donated (an H100, jax 0.11.2).
            leaf = jax.device_put(leaf, leaf.sharding.with_memory_kind("device"))
        return np.asarray(leaf)
