"""Where arguments are before a call: on its device or another, spread or whole, on the host.

An array that was put somewhere is *committed*: computations follow it. One that nobody placed is on the default device,
uncommitted, and moves to wherever the others are, at each call again.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, grid, mlp, over_samples
from workloads.placement.network import LAYERS, SIZES, draw_inputs, train_step

CASES = Family("placement")

DEVICES = 8


@CASES.workload("batch-put-sharded-vs-through-the-first-device", sizes=SIZES, devices=DEVICES)
def put_sharded(size: Extent) -> Computation:
    """A batch of the host, sent to eight devices in parts, against the whole of it by way of the first one."""
    mesh = grid(data=DEVICES)
    everywhere, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    step = jax.jit(mlp)
    moving_step = jax.jit(mlp, in_shardings=(everywhere, spread))
    params, x, _ = draw_inputs(size)

    def in_parts(params: Tree, x: Any) -> jax.Array:
        return step(params, jax.device_put(x, spread))

    def by_the_first(params: Tree, x: Any) -> jax.Array:
        return moving_step(params, jnp.asarray(x))

    return Computation(
        subject=in_parts,
        reference=by_the_first,
        args=(jax.device_put(params, everywhere), x),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("launches == 1", "each device is sent its part, and nothing is cut up there"),
            claim(
                "launches <= 0.5 * reference", "the whole batch lands on one device and is cut by a program of its own"
            ),
            claim("host_transfers <= 0.75 * reference", "the batch is moved once, not twice"),
        ],
    )


@CASES.workload("parameters-kept-on-the-device-vs-sent-at-every-call", sizes=SIZES)
def kept_params(size: Extent) -> Computation:
    """Parameters that stay on the device, against NumPy arrays that are sent at every call."""
    step = jax.jit(mlp)
    params, x, _ = draw_inputs(size)

    def kept(placed: Tree, x: Any) -> jax.Array:
        return step(placed, jax.device_put(x))

    def sent(placed: Tree, x: Any) -> jax.Array:
        del placed
        return step(params, x)

    return Computation(
        subject=kept,
        reference=sent,
        args=(jax.device_put(params), x),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("launches == 1", "sending is no program"),
            claim("host_transfers == 1", "only the batch is new"),
            claim(
                f"host_transfers <= {1 / (2 * LAYERS + 1)} * reference",
                "a kernel and a bias of each layer are sent with it",
            ),
        ],
    )


@CASES.workload("state-committed-with-its-batch-vs-copied", sizes=SIZES)
def committed(size: Extent) -> Computation:
    """A training step whose state is put on the device beside the batch before the first call."""
    device = jax.devices()[0]
    params, x, y = draw_inputs(size)
    # The batch is committed, so each result is: a state that is not would be another argument at step 2.
    batch = jax.device_put((x, y), device)
    params = jax.device_put(params, device)
    return Computation(
        subject=jax.jit(train_step, donate_argnums=0),
        reference=jax.jit(train_step),
        args=(params, *batch),
        grow=over_samples((params, *batch), 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "what comes back is placed as what was given"),
            claim("aliased_bytes >= donated_bytes", "so that it can take the place of it"),
            claim("matmul_flops == reference", "one forward, one backward pass"),
        ],
    )


@CASES.workload("batch-spread-over-8-devices-vs-whole-on-each", sizes=SIZES, devices=DEVICES)
def spread_batch(size: Extent) -> Computation:
    """A training step on eight devices: state on each, batch in parts, against the whole batch on each."""
    mesh = grid(data=DEVICES)
    everywhere, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

    def whole(params: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        return train_step(params, *jax.lax.with_sharding_constraint((x, y), everywhere))

    params, x, y = draw_inputs(size)
    params = jax.device_put(params, everywhere)
    placed = jax.device_put((x, y), spread)
    unplaced = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=everywhere) for leaf in (x, y)]
    step = jax.jit(train_step, donate_argnums=0)
    return Computation(
        subject=step,
        reference=jax.jit(whole),
        alternatives={"the batch put whole": Alternative(function=step, args=(params, *unplaced))},
        args=(params, *placed),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "state that was placed on every device stays there"),
            claim("xla_flops <= 0.3 * reference", "each device works through an eighth of the batch"),
            claim("argument_bytes <= 0.9 * alternatives", "and holds that part of it only"),
            claim("collectives >= 1", "the gradients are summed over the devices"),
            claim("collective_bytes <= 1.1 * donated_bytes", "and nothing else travels"),
            claim("matmul_flops == reference", "one forward, one backward pass"),
        ],
    )
