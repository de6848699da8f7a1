"""The four collectives of ``pmap`` alone, each beside its twin by ``jit`` of ``shard_map``.

Bandwidth is counted as nccl-tests does: bytes of the payload over time, and what of it crosses each link.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Claim, Computation, Family, Growth, claim, grows
from workloads.parts import Extent, sizes
from workloads.pmap.steps import AXIS, DEVICES, line

CASES = Family("pmap")

KIB, MIB = 1024, 1024**2
SWEEP_BYTES = {"4-KiB": 4 * KIB, "64-KiB": 64 * KIB, "1-MiB": MIB, "16-MiB": 16 * MIB, "64-MiB": 64 * MIB}
ITEM_BYTES = 4  # of a float32
RING = [(device, (device + 1) % DEVICES) for device in range(DEVICES)]

SIZES = sizes(nbytes=(MIB, 16 * MIB))
"""Bytes that are on one device, whole: before a scatter, after a gather."""

ROOMS = sizes(nbytes=(128 * MIB, DEVICES * 64 * MIB))
"""Bytes that the arrays of all devices of a sweep may take together: with too many, fewer devices take part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One way of moving an array."""

    one: Callable[[jax.Array], jax.Array]  # what each device does with its array [items]
    share: int = 1  # the part of the payload that each device starts with
    crossing: float  # bytes over each link for each byte of payload, by nccl-tests' definition
    payload: str = "argument_bytes"  # `argument_bytes` or `output_bytes`: which of the two is the payload


def summed(v: jax.Array) -> jax.Array:
    """Add up the arrays of all devices, for all: [items] to [items]."""
    return jax.lax.psum(v, AXIS)


def gathered(v: jax.Array) -> jax.Array:
    """Bring the parts of all devices together, for all: [items / devices] to [items]."""
    return jax.lax.all_gather(v, AXIS, tiled=True)


def scattered(v: jax.Array) -> jax.Array:
    """Add up the arrays of all devices, a part for each: [items] to [items / devices]."""
    return jax.lax.psum_scatter(v, AXIS, tiled=True)


def passed_on(v: jax.Array) -> jax.Array:
    """Hand the array to the next device of a ring: [items] to [items]."""
    return jax.lax.ppermute(v, AXIS, RING)


COLLECTIVES = {
    "all-gather": Collective(one=gathered, share=DEVICES, crossing=(DEVICES - 1) / DEVICES, payload="output_bytes"),
    "reduce-scatter": Collective(one=scattered, crossing=(DEVICES - 1) / DEVICES),
    "permute": Collective(one=passed_on, crossing=1.0),
}


def payload(items: int, devices: int = DEVICES) -> jax.Array:
    """Stack [devices, items], an entry made on each device; small whole numbers, whose sums are exact in any order."""
    spread = NamedSharding(line(devices), P(AXIS))

    def stack() -> jax.Array:
        return jnp.arange(devices, dtype=jnp.float32)[:, None] + (jnp.arange(items) % 61).astype(jnp.float32)

    return jax.jit(stack, out_shardings=spread)()


def stacked_twin(one: Callable[[jax.Array], jax.Array]) -> Callable[..., Any]:
    """``shard_map`` over the stack, an entry for each device in and out."""
    twin: Callable[..., Any] = jax.shard_map(
        lambda v: one(v[0])[None], mesh=line(), in_specs=P(AXIS), out_specs=P(AXIS)
    )
    return twin


@CASES.workload("{kind}-by-pmap", sweep=tuple({"kind": kind} for kind in COLLECTIVES), sizes=SIZES, devices=DEVICES)
def moved(size: Extent, kind: str) -> Computation:
    collective = COLLECTIVES[kind]
    twin = jax.jit(stacked_twin(collective.one))
    return Computation(
        subject=jax.pmap(collective.one, axis_name=AXIS),
        reference=twin,
        args=(payload(size.nbytes // ITEM_BYTES // collective.share),),
        amount=Amount(count=size.nbytes, unit="B", bus_factor=collective.crossing),
        claims=[
            claim("collectives == 1", "one operation does it"),
            claim(f"collective_bytes <= {collective.payload}", "it moves its payload, once"),
            *beside_twin("pmap"),
        ],
    )


SENT_ONCE = (grows("collectives", "devices") <= 0, grows("collective_bytes", "devices") <= 0)
"""However many devices there are, each sends as much."""


def adding_up(way: str, count: int) -> Callable[..., Any]:
    """The sum of the arrays of so many devices, of which one copy is handed back: all have the same."""
    if way == "pmap":
        return jax.pmap(summed, axis_name=AXIS, out_axes=None)
    return jax.jit(jax.shard_map(lambda v: summed(v[0]), mesh=line(count), in_specs=P(AXIS), out_specs=P()))


@CASES.workload(
    "psum-of-{nbytes}-by-{way}",
    sweep=(*({"nbytes": nbytes, "way": "pmap"} for nbytes in SWEEP_BYTES), {"nbytes": "1-MiB", "way": "jit-shard-map"}),
    sizes=ROOMS,
    devices=DEVICES,
)
def all_reduce(room: Extent, nbytes: str, way: str) -> Computation:
    each = SWEEP_BYTES[nbytes]
    count = min(DEVICES, room.nbytes // each)
    by_pmap = way == "pmap"

    def over(devices: int) -> Alternative:
        stack = jax.ShapeDtypeStruct(
            (devices, each // ITEM_BYTES), jnp.float32, sharding=NamedSharding(line(devices), P(AXIS))
        )
        return Alternative(function=adding_up(way, devices), args=(stack,))

    return Computation(
        subject=adding_up(way, count),
        reference=adding_up("jit-shard-map", count) if by_pmap else jax.jit(lambda stack: stack.sum(0)),
        args=(payload(each // ITEM_BYTES, count),),
        grow=Growth(over, devices=(2, 4, 8), claims=SENT_ONCE) if count == DEVICES else None,
        amount=Amount(count=each, unit="B", bus_factor=2 * (count - 1) / count),
        claims=[
            claim("collectives == 1", "one all-reduce does it"),
            claim(f"collective_bytes == {SWEEP_BYTES[nbytes]}", "it moves its payload, once"),
            *beside_twin(way),
        ],
    )


def beside_twin(way: str) -> tuple[Claim, ...]:
    if way != "pmap":
        return ()
    return (
        claim("collectives == reference", "pmap is jit of shard_map"),
        claim("collective_bytes == reference", "pmap is jit of shard_map"),
        claim("peak_bytes <= 1.1 * reference", "pmap needs no more memory"),
    )
