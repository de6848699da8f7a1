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

from jaxgate.model import Alternative, Amount, Batch, Case, Claim, Computation, at_least, at_most, cases, equal
from workloads.parts import Tree, grid, mlp
from workloads.placement.network import LAYERS, SIZES, Extent, draw_inputs, train_step

DEVICES = 8


def put_sharded(size: Extent) -> Computation:
    """A batch of the host, sent to eight devices in parts, against the whole of it by way of the first one."""
    mesh = grid(data=DEVICES)
    everywhere, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    step = jax.jit(mlp)
    moving_step = jax.jit(mlp, in_shardings=(everywhere, spread))
    params, x, _ = draw_inputs(size)

    def in_parts(params: Tree, x: Any) -> jax.Array:
        result: jax.Array = step(params, jax.device_put(x, spread))
        return result

    def by_the_first(params: Tree, x: Any) -> jax.Array:
        result: jax.Array = moving_step(params, jnp.asarray(x))
        return result

    return Computation(
        subject=in_parts,
        reference=by_the_first,
        args=(jax.device_put(params, everywhere), x),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
    )


def put_sharded_claims() -> tuple[Claim, ...]:
    """What placing a batch at once gives, on any hardware."""
    return (
        equal("launches", to=1, why="each device is sent its part, and nothing is cut up there"),
        at_most(0.5, "launches", why="the whole batch lands on one device and is cut by a program of its own"),
        at_most(0.75, "host_transfers", why="the batch is moved once, not twice"),
    )


def kept_params(size: Extent) -> Computation:
    """Parameters that stay on the device, against NumPy arrays that are sent at every call."""
    step = jax.jit(mlp)
    params, x, _ = draw_inputs(size)

    def kept(placed: Tree, x: Any) -> jax.Array:
        result: jax.Array = step(placed, jax.device_put(x))
        return result

    def sent(placed: Tree, x: Any) -> jax.Array:
        del placed
        result: jax.Array = step(params, x)
        return result

    return Computation(
        subject=kept,
        reference=sent,
        args=(jax.device_put(params), x),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
    )


def kept_params_claims() -> tuple[Claim, ...]:
    """What keeping parameters on the device gives, on any hardware."""
    return (
        equal("launches", to=1, why="sending is no program"),
        equal("host_transfers", to=1, why="only the batch is new"),
        at_most(1 / (2 * LAYERS + 1), "host_transfers", why="a kernel and a bias of each layer are sent with it"),
    )


def by_default_device(size: Extent) -> Computation:
    """A step on the second device, whose batch lands there at once, against one by way of the default device."""
    device = jax.devices()[1]
    step = jax.jit(mlp)
    params, x, _ = draw_inputs(size)

    def at_once(params: Tree, x: Any) -> jax.Array:
        with jax.default_device(device):
            placed = jnp.asarray(x)
        result: jax.Array = step(params, placed)
        return result

    def moved(params: Tree, x: Any) -> jax.Array:
        result: jax.Array = step(params, jax.device_put(jnp.asarray(x), device))
        return result

    return Computation(
        subject=at_once,
        reference=moved,
        args=(jax.device_put(params, device), x),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
    )


def by_default_device_claims() -> tuple[Claim, ...]:
    """What a default device gives, on any hardware."""
    return (
        equal("host_transfers", to=1, why="the batch is sent to where it is needed"),
        at_most(0.75, "host_transfers", why="not to the first device, and from there on"),
        at_most(1.0, "launches", why="and no program is needed for that"),
    )


def committed(size: Extent) -> Computation:
    """A training step whose state is put on the device beside the batch before the first call."""
    device = jax.devices()[0]
    params, x, y = draw_inputs(size)
    # The batch is committed, so each result is: a state that is not would be another argument at step 2.
    params = jax.device_put(params, device)
    return Computation(
        subject=jax.jit(train_step, donate_argnums=0),
        reference=jax.jit(train_step),
        args=(params, *jax.device_put((x, y), device)),
        next_args=lambda result, args: (result[0], *args[1:]),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=size.step_flops,
        rtol=size.rtol,
        atol=size.rtol / 10,
    )


def committed_claims() -> tuple[Claim, ...]:
    """What a state in its place gives, on any hardware."""
    return (
        equal("compiles", to=1, why="what comes back is placed as what was given"),
        equal("aliased_bytes", to="donated_bytes", why="so that it can take the place of it"),
        equal("matmul_flops", to="analytic_flops", why="one forward, one backward pass"),
    )


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
        next_args=lambda result, args: (result[0], *args[1:]),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=size.step_flops,
        rtol=size.rtol,
        atol=size.rtol / 10,
    )


def spread_batch_claims() -> tuple[Claim, ...]:
    """What a sharding in ``device_put`` gives, on any hardware."""
    return (
        equal("compiles", to=1, why="state that was placed on every device stays there"),
        at_most(0.3, "xla_flops", why="each device works through an eighth of the batch"),
        at_most(0.9, "argument_bytes", of="alternatives", why="and holds that part of it only"),
        at_least(1, "collectives", of="one", why="the gradients are summed over the devices"),
        at_most(1.1, "collective_bytes", of="donated_bytes", why="and nothing else travels"),
        equal("matmul_flops", to="analytic_flops", why="one forward, one backward pass"),
    )


CASES: tuple[Case, ...] = (
    *cases(
        "placement",
        "batch-put-sharded-vs-through-the-first-device",
        put_sharded,
        ({},),
        put_sharded_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
    *cases(
        "placement",
        "parameters-kept-on-the-device-vs-sent-at-every-call",
        kept_params,
        ({},),
        kept_params_claims,
        sizes=SIZES,
    ),
    *cases(
        "placement",
        "batch-on-the-default-device-vs-moved-from-another",
        by_default_device,
        ({},),
        by_default_device_claims,
        sizes=SIZES,
        devices=2,
    ),
    *cases(
        "placement",
        "state-committed-with-its-batch-vs-copied",
        committed,
        ({},),
        committed_claims,
        sizes=SIZES,
    ),
    *cases(
        "placement",
        "batch-spread-over-8-devices-vs-whole-on-each",
        spread_batch,
        ({},),
        spread_batch_claims,
        sizes=SIZES,
        devices=DEVICES,
    ),
)
