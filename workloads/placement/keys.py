"""What is made where it is used: random keys, functions within one another, state that waits in the host's memory."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Computation, Family, KnownBreak, claim
from workloads.parts import Extent, Tree, another, descend, grid, mlp
from workloads.placement.placing import LAYERS, LEARNING_RATE, SIZES, draw_inputs

CASES = Family("placement")

SCALE = 0.1
ROWS = 64
"""Samples whose noise the alternative holds, again and again."""


def noisy(params: Tree, x: jax.Array, key: jax.Array) -> jax.Array:
    """What the network says of samples with noise: [batch, width]."""
    return mlp(params, x + SCALE * jax.random.normal(key, x.shape))


@CASES.workload("key-folded-within-the-step-vs-made-by-python", sizes=SIZES)
def from_a_number(size: Extent) -> Computation:
    """Noise for step ``number``: the key folded within the program, against a key that Python makes of the number."""
    folded_step = jax.jit(lambda params, x, key, number: noisy(params, x, jax.random.fold_in(key, number)))
    keyed_step = jax.jit(noisy)

    def within(params: Tree, x: jax.Array, key: jax.Array, number: int) -> jax.Array:
        return folded_step(params, x, key, number)

    def by_python(params: Tree, x: jax.Array, key: jax.Array, number: int) -> jax.Array:
        del key
        return keyed_step(params, x, jax.random.fold_in(jax.random.key(0), number))

    params, x, _ = jax.device_put(draw_inputs(size))
    return Computation(
        subject=within,
        reference=by_python,
        args=(params, x, jax.random.key(0), 0),
        next_args=lambda _, args: (*args[:3], args[3] + 1),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("compiles == 1", "the number of the step is an argument, not a part of the program"),
            claim("launches == 1", "the key is made by the step itself"),
            claim("launches <= 0.5 * reference", "Python makes a key, and then another, by programs of their own"),
            claim("host_transfers <= 0.75 * reference", "one number is sent in place of two"),
        ],
    )


@CASES.workload("key-carried-from-step-to-step-vs-numbers-compiled-in", sizes=SIZES)
def carried(size: Extent) -> Computation:
    """A key that each step splits and returns for the next; the alternative has the numbers of another generator in it."""
    drawn = np.random.default_rng(0).standard_normal((ROWS, size.width), np.float32)

    def splitting(params: Tree, x: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        following, own = jax.random.split(key)
        return following, noisy(params, x, own)

    def compiled_in(params: Tree, x: jax.Array) -> jax.Array:
        return mlp(params, x + SCALE * jnp.tile(drawn, (len(x) // ROWS, 1)))

    params, x, _ = jax.device_put(draw_inputs(size))
    return Computation(
        subject=jax.jit(splitting, donate_argnums=2),
        alternatives=another("numbers compiled in", jax.jit(compiled_in), (params, x)),
        args=(params, x, jax.random.key(0)),
        carry=2,
        batch=Batch(argument=1, size=size.batch),
        analytic_flops=2 * LAYERS * size.batch * size.width**2,
        claims=[
            claim("compiles == 1", "a key that comes back is of the type that it was"),
            claim("aliased_bytes >= donated_bytes", "and takes the place of the old one"),
            claim("constant_bytes <= 0.05 * alternatives", "no number is drawn while the program is traced"),
            claim("matmul_flops == analytic_flops", "one forward pass"),
        ],
    )


# Parallel functions within one another: ``shard_map`` under ``jit`` or by itself, ``vmap`` within ``shard_map``.

DEVICES = 8
MEMBERS = 16


@CASES.workload("shard_map-in-jit-vs-by-itself", sizes=SIZES, devices=DEVICES)
def under_jit(size: Extent) -> Computation:
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
            claim("launches <= 0.5 * reference", "by itself each operation is a program, traced at each call"),
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


# State that waits in the host's memory: moments of an optimiser, brought to the device for their update only.

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
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
    return descend(params, moments, LEARNING_RATE), moments


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
        alternatives=another("moments on the device", jax.jit(updated, donate_argnums=(0, 1)), (placed, kept, grads)),
        args=(placed, jax.device_put(kept, host), grads),
        carry=(0, 1),
        amount=Amount(count=LAYERS * size.width * (size.width + 1), unit="parameters"),
        rtol=size.rtol,
        claims=[
            claim("compiles == 1", "moments come back to where they were"),
            claim("aliased_bytes >= donated_bytes", "and into their buffers", known_break=COUNTED_APART),
            claim(
                "argument_bytes <= 0.75 * alternatives",
                "of three arrays for each parameter the device holds two",
                known_break=ONE_MEMORY,
            ),
        ],
    )
