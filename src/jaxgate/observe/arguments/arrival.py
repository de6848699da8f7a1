"""How the arguments of a call arrive: what JAX converts, sends or moves before its program can begin.

The gate puts arguments in place before it measures, as a timed call must not pay for that; a call of the project does.
So each leaf is looked at as the project gives it. What is threaded from a result, or made by ``next_args``, is looked at
as the second call gets it: the first one is given it once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from jaxgate.model.measurement import ELSEWHERE, Argument
from jaxgate.observe.arguments.feeder import Call
from jaxgate.observe.arguments.static import dynamic_places

_PYTHON = (bool, int, float, complex)
_PYTHON_BYTES = {bool: 1, complex: 16}
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Given:
    """A leaf as somebody gives it, without its values."""

    label: str  # what it is, for people: `NumPy float64`
    # bytes of an element, before JAX converts it; unknown of a device array, which is never converted
    itemsize: int | None
    sharding: Any  # where it lies; `None` on the host


def describe_given(leaf: Any) -> Given:
    """Say what a leaf is before anything is put on a device."""
    if isinstance(leaf, jax.Array):
        sharding = leaf.sharding
        kind = sharding.memory_kind
        usual = next(iter(sharding.device_set)).default_memory().kind
        memory = "device" if kind in (None, usual) else kind
        return Given(f"{'' if leaf.committed else 'uncommitted '}{memory} array", None, sharding)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return Given(f"NumPy {leaf.dtype.name}", leaf.dtype.itemsize, None)
    kind = type(leaf)
    name = f"Python {kind.__name__}" if isinstance(leaf, _PYTHON) else kind.__name__
    size = getattr(getattr(leaf, "dtype", None), "itemsize", None)
    return Given(name, _PYTHON_BYTES.get(kind, _NUMBER_BYTES) if size is None else int(size), None)


def describe_next(call: Call, before: Call) -> list[int | Given]:
    """Say what each leaf of a threaded call is: its place in the call before, from which it was handed on, or what is new."""
    places = {id(leaf): place for place, leaf in enumerate(jax.tree.leaves(before))}
    return [places.get(id(leaf), describe_given(leaf)) for leaf in jax.tree.leaves(call)]


def add_arrivals(
    signature: Sequence[Argument],
    stage: jax.stages.Lowered,
    wanted: Sequence[Any],
    *,
    given: Call,
    call: Call,
    following: Sequence[int | Given],
) -> tuple[Argument, ...]:
    """Note of each dynamic argument how it arrives at every call.

    ``wanted`` has ``None`` for an argument that the executable does not use; ``call`` is ``given`` on the device;
    ``following`` comes from ``describe_next``, empty where nothing is threaded.
    """
    first = [describe_given(leaf) for leaf in jax.tree.leaves(given)]
    later = first
    if len(following) == len(first):
        later = [first[found] if isinstance(found, int) else found for found in following]
    infos = jax.tree.leaves(stage.args_info)
    places = dynamic_places(stage, *call)
    return tuple(
        _arriving(leaf, later[place], info, sharding)
        for leaf, place, info, sharding in zip(signature, places, infos, wanted, strict=True)
    )


def _arriving(leaf: Argument, given: Given, info: Any, wanted: Any) -> Argument:
    """An argument with how it arrives. One that the program does not use costs nothing: JAX drops it before the call."""
    shape = tuple(info.shape)
    if given.sharding is None:
        elements = 0 if wanted is None else math.prod(wanted.shard_shape(shape)) * len(wanted.addressable_devices)
        return replace(leaf, arrival=given.label, sent_bytes=elements * (given.itemsize or 0))
    moved = 0 if wanted is None else _shards_to_move(shape, given.sharding, wanted) * leaf.nbytes
    return replace(leaf, arrival=given.label + (ELSEWHERE if moved else ""), sent_bytes=moved)


def _shards_to_move(shape: tuple[int, ...], given: Any, wanted: Any) -> int:
    """How many devices of this process do not hold their part of an array."""
    if given == wanted or given.is_equivalent_to(wanted, len(shape)):
        return 0
    held = given.devices_indices_map(shape) if given.memory_kind == wanted.memory_kind else {}
    needed = wanted.addressable_devices_indices_map(shape)
    return sum(held.get(device) != index for device, index in needed.items())
