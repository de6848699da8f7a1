"""Parallel functions within one another: ``shard_map`` under ``jit`` or by itself, ``vmap`` within ``shard_map``."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, grid, mlp
from workloads.placement.network import SIZES, draw_inputs

CASES = Family("placement")

DEVICES = 8
MEMBERS = 16


@CASES.workload("shard_map-in-jit-vs-by-itself", sizes=SIZES, devices=DEVICES)
def under_jit(size: Extent) -> Computation:
    """A function of each device's samples as one program, against operation by operation."""
    mesh = grid(data=DEVICES)

    def local(kernel: jax.Array, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x @ kernel)

    mapped: Any = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))
    compiled = jax.jit(mapped)

    def once(kernel: jax.Array, x: jax.Array) -> jax.Array:
        return compiled(kernel, x)

    params, x, _ = draw_inputs(size)
    kernel = params[0]["kernel"]
    return Computation(
        subject=once,
        reference=mapped,
        args=(jax.device_put(kernel, NamedSharding(mesh, P())), jax.device_put(x, NamedSharding(mesh, P("data")))),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("launches == 1", "the whole function is one program"),
            claim(
                "launches <= 0.5 * reference", "by itself it is traced at each call, and a program for each operation"
            ),
            claim("host_transfers == 0", "everything is in its place"),
        ],
    )


@CASES.workload("ensemble-by-vmap-in-shard_map-vs-whole-on-each-device", sizes=SIZES, devices=DEVICES)
def ensemble(size: Extent) -> Computation:
    """Members spread over the devices and batched on each, against all members on every device."""
    mesh = grid(members=DEVICES)
    everywhere, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("members"))
    batched: Any = jax.vmap(mlp, in_axes=(0, None))

    def collected(params: Tree, x: jax.Array) -> jax.Array:
        return batched(jax.lax.with_sharding_constraint(params, everywhere), x)

    one, x, _ = draw_inputs(size)
    scales = np.linspace(0.5, 1.5, MEMBERS, dtype=np.float32)
    params = jax.tree.map(lambda leaf: np.multiply.outer(scales, leaf), one)
    return Computation(
        subject=jax.jit(jax.shard_map(batched, mesh=mesh, in_specs=(P("members"), P()), out_specs=P("members"))),
        reference=jax.jit(collected, out_shardings=everywhere),
        args=(jax.device_put(params, spread), jax.device_put(x, everywhere)),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=MEMBERS * size.batch, unit="samples"),
        rtol=size.rtol,
        atol=size.rtol,
        claims=[
            claim("collectives == 0", "members know nothing of one another"),
            claim("xla_flops <= 0.2 * reference", "each device works through an eighth of them"),
            claim("output_bytes <= 0.2 * reference", "and holds what its own ones say"),
            claim("matmul_flops == reference", "each member reads the batch once"),
        ],
    )
