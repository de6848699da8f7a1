"""State that waits in the host's memory: moments of an optimiser, brought to the device for their update only."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

from jaxgate import Alternative, Amount, Computation, Family, KnownBreak, claim
from workloads.parts import Extent, Tree
from workloads.placement.network import LAYERS, SIZES, draw_inputs

CASES = Family("placement")

ONE_MEMORY = KnownBreak(
    jax=">=0.10",
    platform="cpu",
    since="2026-11-21",
    why="a CPU has one memory: what waits on the host is counted as the device's",
)
COUNTED_APART = KnownBreak(
    jax=">=0.10",
    platform="gpu",
    since="2026-11-24",
    why="its compiler counts arrays in the host's memory apart, aliased ones too",
)


def updated(params: Tree, moments: Tree, grads: Tree) -> tuple[Tree, Tree]:
    """Momentum: the next moments and parameters."""
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
    return jax.tree.map(lambda p, m: p - 0.01 * m, params, moments), moments


def offloaded(params: Tree, moments: Tree, grads: Tree) -> tuple[Tree, Tree]:
    """The same with moments that come from the host's memory and go back there."""
    here = jax.device_put(moments, jax.memory.Space.Device)
    params, here = updated(params, here, grads)
    return params, jax.device_put(here, jax.memory.Space.Host)


def fetched(params: Tree, moments: Tree, grads: Tree) -> tuple[Tree, Tree]:
    """The same with moments that come from the host's memory and stay."""
    return updated(params, jax.device_put(moments, jax.memory.Space.Device), grads)


@CASES.workload("moments-in-pinned-host-memory-vs-on-the-device", sizes=SIZES)
def moments_on_the_host(size: Extent) -> Computation:
    """Parameters and gradients on the device, moments in the host's pinned memory."""
    host = SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    device = SingleDeviceSharding(jax.devices()[0])
    params, _, _ = draw_inputs(size)
    grads = jax.tree.map(lambda leaf: 0.5 * leaf, params)
    placed, grads = jax.device_put((params, grads), device)
    kept = jax.device_put(jax.tree.map(jnp.zeros_like, placed), device)
    return Computation(
        subject=jax.jit(offloaded, donate_argnums=(0, 1)),
        reference=jax.jit(fetched),
        alternatives={
            "moments on the device": Alternative(
                function=jax.jit(updated, donate_argnums=(0, 1)), args=(placed, kept, grads)
            )
        },
        args=(placed, jax.device_put(kept, host), grads),
        carry=(0, 1),
        amount=Amount(count=LAYERS * size.width * (size.width + 1), unit="parameters"),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "moments come back to where they were"),
            claim(
                "aliased_bytes >= donated_bytes", "and into the buffers that they were in", known_break=COUNTED_APART
            ),
            claim(
                "argument_bytes <= 0.75 * alternatives",
                "of three arrays for each parameter the device holds two",
                known_break=ONE_MEMORY,
            ),
        ],
    )
