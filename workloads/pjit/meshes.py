"""Meshes by their names in the ids, arrays laid out on them, and the naive way of using them: collect everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Claim, Family, claim
from workloads.parts import Tree, grid

MESHES: dict[str, dict[str, int]] = {
    "8": {"data": 8},
    "4": {"data": 4},
    "2x2": {"data": 2, "model": 2},
    "4x2": {"data": 4, "model": 2},
    "2x4": {"data": 2, "model": 4},
    "1x8": {"data": 1, "model": 8},
}
"""Devices along each axis: the batch goes over ``data``, hidden units, heads or vocabulary over ``model``."""


TRAINED: tuple[Claim, ...] = (
    claim("matmul_flops == reference", "one forward, one backward pass"),
    claim("donated_bytes >= 1", "the parameters are donated"),
    claim("aliased_bytes >= donated_bytes", "new parameters have the layout of the old ones"),
)
"""What holds for every training step on a mesh."""

AGAINST = {"none": "batch", "model": "swapped", "hybrid": "swapped", "fsdp": "batch", "full": "batch"}
"""The strategy that a training step by another one is held against; splitting the batch is held against none."""


def mesh_of(name: str) -> Mesh:
    """The mesh over the first devices of this machine."""
    return grid(**MESHES[name])


def devices_of(name: str) -> int:
    """How many devices a mesh has."""
    return prod(MESHES[name].values())


def shardings(mesh: Mesh, specs: Tree) -> Tree:
    """Shardings of a tree of partition specs."""
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda leaf: isinstance(leaf, P))


def shapes(tree: Tree, layout: Tree) -> Tree:
    """Arrays without data, in a layout: what a alternative is compiled for."""

    def shape(array: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)

    return jax.tree.map(shape, tree, layout)


def gathered(step: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """The naive way: every device collects all arguments and does all the work."""
    everywhere = NamedSharding(mesh, P())

    def whole(*args: Any) -> Any:
        return jax.lax.with_sharding_constraint(step(*jax.lax.with_sharding_constraint(args, everywhere)), everywhere)

    return jax.jit(whole)


def on_meshes(
    family: Family, sentence: str, sweep: Iterable[Mapping[str, Any]], sizes: Mapping[Any, Any]
) -> Callable[[Any], Any]:
    """Add cases to a family as ``Family.workload`` does, each with as many devices as its ``mesh`` has."""

    def add(build: Any) -> Any:
        for params in sweep:
            family.workload(sentence, sweep=[params], sizes=sizes, devices=devices_of(params["mesh"]))(build)
        return build

    return add
