"""The computations: the whole composition against one that lacks a layer, with their arguments on a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Claim, Computation, claim
from workloads.composed.models import make_params
from workloads.composed.step import Composition
from workloads.parts import Extent, Tree, drawing, grid, over_samples, sizes

SIZES = sizes(layers=(4, 8), time=(32, 512), width=(32, 1024), hidden=(64, 2048), batch=(32, 64), micro_batches=4)


ALWAYS: tuple[Claim, ...] = (
    claim("matmul_flops == analytic_flops", "one forward pass, blocks once more on the way back, no product else"),
    claim("donated_bytes >= 1", "parameters and optimiser state are donated"),
    claim("host_callbacks == 0", "the loss is returned, not read inside the step"),
)
"""What holds for the composition, whatever the reference lacks."""


def matmul_flops(size: Extent) -> int:
    """FLOPs of a step with rematerialised blocks.

    On the way back each product costs two, one for each operand; blocks are computed again but for their last
    product, which only their result needs.
    """
    mix = 2 * size.time * size.time * size.width
    up = down = 2 * size.time * size.width * size.hidden
    return size.batch * size.layers * (3 * (mix + up + down) + mix + up)


def across(mesh: Any, tree: Tree, *, sharded: bool) -> Tree:
    """How each leaf lies on the mesh: its last axis divided, or all of it on each device."""

    def place(leaf: Any) -> NamedSharding:
        spec = P(*(None,) * (leaf.ndim - 1), "data") if sharded and leaf.ndim else P()
        return NamedSharding(mesh, spec)

    return jax.tree.map(place, tree)


def compared(
    size: Extent,
    lacking: Composition,
    claims: Sequence[Claim],
    *,
    devices: int = 1,
    shard: bool = False,
    reference_sharded: bool | None = None,
) -> Computation:
    """The whole composition against one that lacks a layer.

    Args:
        size: Extents.
        lacking: The reference.
        claims: What must hold beside ``ALWAYS``.
        devices: In the mesh. A mesh of one is a mesh too: the program is the same.
        shard: Whether each device holds a part of the optimiser's state only.
        reference_sharded: Likewise of what the reference returns; as the subject unless said.
    """
    mesh = grid(data=devices)
    # The epsilon keeps the update of an element whose gradient is nearly nothing from turning rounding into a sign.
    optimiser = optax.adamw(1e-3, eps=1e-4)
    params = make_params(size)
    opt_state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(optimiser.init, params))

    def shardings(*, sharded: bool) -> Tree:
        return across(mesh, params, sharded=False), across(mesh, opt_state, sharded=sharded)

    draw = drawing(1)
    x, y = (draw((size.batch, size.time, size.width)) for _ in range(2))
    placed = shardings(sharded=shard)
    args = *jax.device_put((params, opt_state), placed), *jax.device_put((x, y), NamedSharding(mesh, P("data")))
    return Computation(
        subject=Composition().step(size, mesh, optimiser, placed),
        reference=lacking.step(
            size, mesh, optimiser, shardings(sharded=shard if reference_sharded is None else reference_sharded)
        ),
        args=args,
        grow=over_samples(args, 2, 3, quarters=(4, 8, 16)),
        carry=(0, 1),
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        analytic_flops=matmul_flops(size),
        rtol=1e-3,
        atol=1e-5,
        claims=[*ALWAYS, *claims],
    )
