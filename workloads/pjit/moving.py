"""Data that moves on purpose: from one layout into another, and sums over one axis of a mesh with two."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, drawing, sizes
from workloads.pjit.mlp import devices_of, gathered, mesh_of, on_meshes, shardings

CASES = Family("pjit")

SIZES = sizes(rows=(256, 16384), columns=(256, 8192))
"""Rows and columns of one array."""

ROWS, COLUMNS, BOTH = P("data"), P(None, "data"), P("data", "model")

CHANGES = {
    "rows-to-columns": (ROWS, COLUMNS),
    # In one go the partitioner collects everything. On the way each device drops what it does not keep.
    "columns-to-rows-of-the-other-axis": (P(None, "model"), BOTH, ROWS),
}
"""Layouts that an array goes through, the first and the last included."""


def moved(mesh: Mesh, *specs: P) -> Callable[[jax.Array], jax.Array]:
    """Lay an array out anew, step by step."""

    def along(x: jax.Array) -> jax.Array:
        for spec in specs:
            x = lax.with_sharding_constraint(x, NamedSharding(mesh, spec))
        return x

    return jax.jit(along)


def collected(mesh: Mesh, spec: P) -> Callable[[jax.Array], jax.Array]:
    """Lay an array out anew, by way of having all of it everywhere."""
    everywhere, target = NamedSharding(mesh, P()), NamedSharding(mesh, spec)
    move = lax.with_sharding_constraint

    def whole(x: jax.Array) -> jax.Array:
        return move(lax.optimization_barrier(move(x, everywhere)), target)

    return jax.jit(whole)


@on_meshes(
    CASES,
    "pjit-reshard-{change}-on-{mesh}-vs-gathered",
    ({"change": "rows-to-columns", "mesh": "8"}, {"change": "columns-to-rows-of-the-other-axis", "mesh": "4x2"}),
    SIZES,
)
def resharding(size: Extent, change: str, mesh: str) -> Computation:
    """From one layout into another, against having all of it everywhere on the way."""
    old, *others = CHANGES[change]
    devices = mesh_of(mesh)
    x = jax.device_put(drawing()((size.rows, size.columns)), shardings(devices, old))
    return Computation(
        subject=moved(devices, *others),
        reference=collected(devices, others[-1]),
        args=(x,),
        next_args=lambda _, args: args,
        batch=Batch(argument=0, size=size.rows),
        amount=Amount(count=x.nbytes, unit="B"),
        claims=resharding_claims(change, mesh),
    )


def resharding_claims(change: str, mesh: str) -> tuple[Claim, ...]:
    each = {
        "rows-to-columns": (
            claim("collective_bytes == argument_bytes", "each device hands over its part: an all-to-all"),
            claim(f"collective_bytes <= {1.1 / devices_of(mesh)} * reference", "nobody collects what it does not keep"),
        ),
        "columns-to-rows-of-the-other-axis": (
            claim("collective_bytes == output_bytes", "each device receives the rows that it keeps"),
            claim("collective_bytes <= 0.6 * reference", "and no others"),
        ),
    }
    return each[change]


@on_meshes(CASES, "pjit-psum-over-data-on-{mesh}-vs-gathered", ({"mesh": "4x2"},), SIZES)
def summing(size: Extent, mesh: str) -> Computation:
    """Sums of columns over ``data`` by ``shard_map``, against collecting everything."""
    devices = mesh_of(mesh)

    @partial(jax.shard_map, mesh=devices, in_specs=BOTH, out_specs=P("model"))
    def sums(x: jax.Array) -> jax.Array:
        return lax.psum(x.sum(0), "data")

    x = jax.device_put(drawing()((size.rows, size.columns)), shardings(devices, BOTH))
    return Computation(
        subject=jax.jit(sums),
        reference=gathered(partial(jnp.sum, axis=0), devices),
        args=(x,),
        next_args=lambda _, args: args,
        batch=Batch(argument=0, size=size.rows),
        amount=Amount(count=x.nbytes, unit="B"),
        atol=1e-3,  # sums of many numbers around zero
        claims=[
            claim("collectives == 1", "one all-reduce"),
            claim("collective_bytes == output_bytes", "of partial sums, within the groups of one axis"),
            claim(f"xla_flops <= {1.5 / devices_of(mesh)} * reference", "the devices share the additions"),
        ],
    )
