"""Placing data as ``pmap`` wants it: what is mapped is stacked, and each device holds one entry of the stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.parts import Tree

AXIS = "data"
DEVICES = 8


def line(devices: int | Sequence[jax.Device] = DEVICES) -> Mesh:
    """A mesh of one axis in the very order of the devices, as ``pmap`` lays them out: nothing moves before a call."""
    return Mesh(np.array(jax.local_devices()[:devices] if isinstance(devices, int) else devices), (AXIS,))


def stacked(tree: Tree, mesh: Mesh, axis: int = 0) -> Tree:
    """Place a tree whose leaves have one entry for each device on ``axis``."""
    return jax.device_put(tree, NamedSharding(mesh, P(*(None,) * axis, AXIS)))


def copied(tree: Tree, mesh: Mesh) -> Tree:
    """Place a copy of each leaf on every device: leaves [...] become [devices, ...]."""
    return stacked(jax.tree.map(lambda leaf: np.broadcast_to(leaf, (mesh.size, *leaf.shape)), tree), mesh)


def whole(tree: Tree, mesh: Mesh) -> Tree:
    """Place each leaf on every device, as it is: what ``in_axes=None`` broadcasts."""
    return jax.device_put(tree, NamedSharding(mesh, P()))


def mapped(function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """The twin of ``pmap``: a function of one device's entries, by ``shard_map`` over stacked arguments and results."""

    def one(*args: Any) -> Any:
        result = function(*jax.tree.map(lambda leaf: leaf[0], args))
        return jax.tree.map(lambda leaf: leaf[None], result)

    return jax.shard_map(one, mesh=mesh, in_specs=P(AXIS), out_specs=P(AXIS))
