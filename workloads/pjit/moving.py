"""Data that moves on purpose: from one layout into another, and sums over one axis of a mesh with two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model import Amount, Batch, Case, Claim, Computation, at_most, equal
from workloads.parts import drawing
from workloads.pjit.explicit import explicit_mesh
from workloads.pjit.meshes import devices_of, gathered, mesh_of, on_meshes, shardings


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Rows and columns of one array."""

    rows: int
    columns: int


SIZES = {"small": Size(rows=256, columns=256), "full": Size(rows=16384, columns=8192)}

ROWS, COLUMNS, BOTH = P("data"), P(None, "data"), P("data", "model")

CHANGES = {
    "rows-to-columns": (ROWS, COLUMNS),
    "rows-to-everywhere": (ROWS, P()),
    "everywhere-to-rows": (P(), ROWS),
    # In one go the partitioner collects everything. On the way each device drops what it does not keep.
    "columns-to-rows-of-the-other-axis": (P(None, "model"), BOTH, ROWS),
}
"""Layouts that an array goes through, the first and the last included."""


def moved(mesh: Mesh, *specs: P, explicit: bool = False) -> Callable[[jax.Array], jax.Array]:
    """Lay an array out anew, step by step."""
    move = jax.sharding.reshard if explicit else lax.with_sharding_constraint

    def along(x: jax.Array) -> jax.Array:
        for spec in specs:
            x = move(x, NamedSharding(mesh, spec))
        return x

    jitted: Callable[..., Any] = jax.jit(along)
    return jitted


def collected(mesh: Mesh, spec: P, *, explicit: bool = False) -> Callable[[jax.Array], jax.Array]:
    """Lay an array out anew, by way of having all of it everywhere."""
    everywhere, target = NamedSharding(mesh, P()), NamedSharding(mesh, spec)
    move = jax.sharding.reshard if explicit else lax.with_sharding_constraint

    def whole(x: jax.Array) -> jax.Array:
        return move(lax.optimization_barrier(move(x, everywhere)), target)

    jitted: Callable[..., Any] = jax.jit(whole)
    return jitted


def resharding(size: Size, change: str, mesh: str, *, explicit: bool = False) -> Computation:
    """From one layout into another, against having all of it everywhere on the way."""
    old, *others = CHANGES[change]
    devices = explicit_mesh(mesh) if explicit else mesh_of(mesh)
    x = jax.device_put(drawing()((size.rows, size.columns)), shardings(devices, old))
    return Computation(
        subject=moved(devices, *others, explicit=explicit),
        reference=collected(devices, others[-1], explicit=explicit),
        args=(x,),
        next_args=lambda _, args: args,
        batch=Batch(argument=0, size=size.rows),
        amount=Amount(count=x.nbytes, unit="B"),
    )


def resharding_claims(change: str, mesh: str) -> tuple[Claim, ...]:
    """What each change must cost, on any hardware."""
    each = {
        "rows-to-columns": (
            equal("collective_bytes", to="argument_bytes", why="each device hands over its part: an all-to-all"),
            at_most(1.1 / devices_of(mesh), "collective_bytes", why="nobody collects what it does not keep"),
        ),
        "rows-to-everywhere": (
            equal("collective_bytes", to="output_bytes", why="an all-gather: each device ends with everything"),
            equal("collectives", to=1, why="in one go"),
        ),
        "everywhere-to-rows": (equal("collectives", to=0, why="each device keeps its part of what it has"),),
        "columns-to-rows-of-the-other-axis": (
            equal("collective_bytes", to="output_bytes", why="each device receives the rows that it keeps"),
            at_most(0.6, "collective_bytes", why="and no others"),
        ),
    }
    return each[change]


def summing(size: Size, axis: str, mesh: str) -> Computation:
    """Sums of columns over ``data``, or of rows over ``model``, by ``shard_map``, against collecting everything."""
    devices = mesh_of(mesh)
    dimension = ("data", "model").index(axis)
    kept = P("model") if axis == "data" else P("data")

    @partial(jax.shard_map, mesh=devices, in_specs=BOTH, out_specs=kept)
    def sums(x: jax.Array) -> jax.Array:
        return lax.psum(x.sum(dimension), axis)

    x = jax.device_put(drawing()((size.rows, size.columns)), shardings(devices, BOTH))
    return Computation(
        subject=jax.jit(sums),
        reference=gathered(partial(jnp.sum, axis=dimension), devices),
        args=(x,),
        next_args=lambda _, args: args,
        batch=Batch(argument=0, size=size.rows),
        amount=Amount(count=x.nbytes, unit="B"),
        atol=1e-3,  # sums of many numbers around zero
    )


def summing_claims(axis: str, mesh: str) -> tuple[Claim, ...]:
    """What a sum over one axis must give, on any hardware."""
    del axis
    return (
        equal("collectives", to=1, why="one all-reduce"),
        equal("collective_bytes", to="output_bytes", why="of partial sums, within the groups of one axis"),
        at_most(1.5 / devices_of(mesh), "xla_flops", why="the devices share the additions"),
    )


def _changes(*pairs: tuple[str, str]) -> tuple[dict[str, Any], ...]:
    return tuple({"change": change, "mesh": mesh} for change, mesh in pairs)


CASES: tuple[Case, ...] = (
    *on_meshes(
        "pjit-reshard-{change}-on-{mesh}-vs-gathered",
        resharding,
        _changes(
            ("rows-to-columns", "8"),
            ("rows-to-everywhere", "8"),
            ("everywhere-to-rows", "4"),
            ("columns-to-rows-of-the-other-axis", "4x2"),
        ),
        resharding_claims,
        SIZES,
    ),
    *on_meshes(
        "pjit-reshard-{change}-on-{mesh}-with-explicit-axes-vs-gathered",
        partial(resharding, explicit=True),
        _changes(("rows-to-columns", "8")),
        resharding_claims,
        SIZES,
    ),
    *on_meshes(
        "pjit-psum-over-{axis}-on-{mesh}-vs-gathered",
        summing,
        ({"axis": "data", "mesh": "4x2"}, {"axis": "model", "mesh": "2x4"}),
        summing_claims,
        SIZES,
    ),
)
