"""Meshes by their names in the ids, arrays laid out on them, and the naive way of using them: collect everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model import Case, Claim, Computation, at_least, cases, equal
from workloads.parts import Tree, grid

MESHES: dict[str, dict[str, int]] = {
    "8": {"data": 8},
    "4": {"data": 4},
    "2x2": {"data": 2, "model": 2},
    "8x1": {"data": 8, "model": 1},
    "4x2": {"data": 4, "model": 2},
    "2x4": {"data": 2, "model": 4},
    "1x8": {"data": 1, "model": 8},
}
"""Devices along each axis: the batch goes over ``data``, hidden units, heads or vocabulary over ``model``."""


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

    jitted: Callable[..., Any] = jax.jit(whole)
    return jitted


def trained() -> tuple[Claim, ...]:
    """What holds for every training step on a mesh."""
    return (
        equal("matmul_flops", to="analytic_flops", why="one forward, one backward pass"),
        at_least(1, "donated_bytes", of="one", why="the parameters are donated"),
        equal("aliased_bytes", to="donated_bytes", why="new parameters have the layout of the old ones"),
    )


def on_meshes(
    sentence: str,
    build: Callable[..., Computation],
    sweep: Iterable[Mapping[str, Any]],
    claims: Callable[..., tuple[Claim, ...]],
    sizes: Mapping[Any, Any],
) -> tuple[Case, ...]:
    """Cases of this family, each with as many devices as its ``mesh`` has."""
    return tuple(
        case
        for params in sweep
        for case in cases("pjit", sentence, build, (params,), claims, sizes=sizes, devices=devices_of(params["mesh"]))
    )
