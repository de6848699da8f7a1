"""Parallel functions within one another: ``shard_map`` under ``jit`` or by itself, ``vmap`` within ``shard_map``."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate.model import Amount, Batch, Case, Claim, Computation, at_most, cases, equal
from workloads.parts import Tree, grid, mlp
from workloads.placement.network import SIZES, Extent, draw_inputs

DEVICES = 8
MEMBERS = 16


def under_jit(size: Extent) -> Computation:
    """A function of each device's samples as one program, against operation by operation."""
    mesh = grid(data=DEVICES)

    def local(kernel: jax.Array, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x @ kernel)

    mapped: Any = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))
    compiled = jax.jit(mapped)

    def once(kernel: jax.Array, x: jax.Array) -> jax.Array:
        result: jax.Array = compiled(kernel, x)
        return result

    params, x, _ = draw_inputs(size)
    kernel = params[0]["kernel"]
    return Computation(
        subject=once,
        reference=mapped,
        args=(jax.device_put(kernel, NamedSharding(mesh, P())), jax.device_put(x, NamedSharding(mesh, P("data")))),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
    )


def under_jit_claims() -> tuple[Claim, ...]:
    """What one program gives, on any hardware."""
    return (
        equal("launches", to=1, why="the whole function is one program"),
        at_most(0.5, "launches", why="by itself it is traced at each call, and a program for each operation"),
        equal("host_transfers", to=0, why="everything is in its place"),
    )


def ensemble(size: Extent) -> Computation:
    """Members spread over the devices and batched on each, against all members on every device."""
    mesh = grid(members=DEVICES)
    everywhere, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("members"))
    batched: Any = jax.vmap(mlp, in_axes=(0, None))

    def collected(params: Tree, x: jax.Array) -> jax.Array:
        result: jax.Array = batched(jax.lax.with_sharding_constraint(params, everywhere), x)
        return result

    one, x, _ = draw_inputs(size)
    scales = np.linspace(0.5, 1.5, MEMBERS, dtype=np.float32)
    params = jax.tree.map(lambda leaf: np.multiply.outer(scales, leaf), one)
    return Computation(
        subject=jax.jit(jax.shard_map(batched, mesh=mesh, in_specs=(P("members"), P()), out_specs=P("members"))),
        reference=jax.jit(collected, out_shardings=everywhere),
        args=(jax.device_put(params, spread), jax.device_put(x, everywhere)),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=MEMBERS * size.batch, unit="samples"),
        analytic_flops=MEMBERS * size.forward_flops,
        rtol=size.rtol,
        atol=size.rtol,
    )


def ensemble_claims() -> tuple[Claim, ...]:
    """What spreading the members gives, on any hardware."""
    return (
        equal("collectives", to=0, why="members know nothing of one another"),
        at_most(0.2, "xla_flops", why="each device works through an eighth of them"),
        at_most(0.2, "output_bytes", why="and holds what its own ones say"),
        equal("matmul_flops", to="analytic_flops", why="each member reads the batch once"),
    )


CASES: tuple[Case, ...] = (
    *cases(
        "placement",
        "shard_map-in-jit-vs-by-itself",
        under_jit,
        ({},),
        under_jit_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
    *cases(
        "placement",
        "ensemble-by-vmap-in-shard_map-vs-whole-on-each-device",
        ensemble,
        ({},),
        ensemble_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
)
