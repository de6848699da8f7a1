"""Weak: gradients accumulated over micro-batches, and fully sharded parameters.

Each device adds up the gradients of its own micro-batches; the sums meet once, after the last. Left to shardings
alone, the loop would bring the gradients of every micro-batch together.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Batch, Computation, Family, Growth, claim, grows
from workloads.parts import Extent, Tree, another, grid, sizes, stretched
from workloads.pjit.mlp import TRAINED, gathered, shapes, shardings
from workloads.scaling.network import (
    PLAIN,
    RTOL,
    WEAK,
    Layers,
    loss_of,
    make_numbers,
    on_devices,
    pair_of_layers,
    train_step,
    updated,
)

CASES = Family("scaling")

PARTS = 4
AXIS = "data"

Averages = Callable[[Tree, jax.Array, jax.Array], Any]
"""Parameters, inputs and targets [batch, width] to loss and gradients, averages over the batch of all devices."""


def accumulated(gradients: Averages) -> Averages:
    """Average over micro-batches, one after the other, keeping only the sum."""

    def averages(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        parts = jax.tree.map(lambda leaf: leaf.reshape(PARTS, -1, leaf.shape[-1]), (x, y))

        def add(total: Tree, part: Any) -> tuple[Tree, jax.Array]:
            loss, grads = gradients(params, *part)
            return jax.tree.map(jnp.add, total, grads), loss

        total, losses = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), parts)
        return losses.mean(), jax.tree.map(lambda leaf: leaf / PARTS, total)

    return averages


def exchanged(gradients: Averages) -> Averages:
    """Average over the devices, too."""

    def averages(params: Tree, x: jax.Array, y: jax.Array) -> Any:
        # Parameters marked as differing by device: those known to be equal have their gradients summed by JAX
        # wherever they arise.
        own = jax.tree.map(lambda leaf: jax.lax.pcast(leaf, AXIS, to="varying"), params)
        return jax.lax.pmean(gradients(own, x, y), AXIS)

    return averages


ONCE = exchanged(accumulated(jax.value_and_grad(loss_of(PLAIN))))
EACH_TIME = accumulated(exchanged(jax.value_and_grad(loss_of(PLAIN))))


def compiled_accumulating(mesh: Mesh, averages: Averages) -> Callable[..., Any]:
    spread = jax.shard_map(averages, mesh=mesh, in_specs=(P(), P(AXIS), P(AXIS)), out_specs=P())

    def step(state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = spread(state["params"], x, y)
        return updated(state, grads), loss

    return jax.jit(step, donate_argnums=0, out_shardings=shardings(mesh, (P(), P())))


@on_devices(CASES, "accumulating-step-weak-on-{devices}-vs-gathered", (2, 8), WEAK)
def accumulating(size: Extent, devices: int) -> Computation:
    """One exchange a step, against the whole batch at once everywhere; the alternative exchanges in each micro-batch."""
    mesh, samples = grid(data=devices), devices * size.samples
    numbers = make_numbers(size, samples)
    state = jax.tree.map(lambda _: P(), numbers[0])
    layout = shardings(mesh, (state, P(AXIS), P(AXIS)))
    return Computation(
        subject=compiled_accumulating(mesh, ONCE),
        reference=gathered(train_step(), mesh),
        args=jax.device_put(numbers, layout),
        carry=0,
        batch=Batch(argument=1, size=samples),
        amount=Amount(count=samples, unit="samples", series="data-parallel with accumulation, weak"),
        alternatives=another("each-time", compiled_accumulating(mesh, EACH_TIME), shapes(numbers, layout)),
        rtol=RTOL,
        claims=[
            *TRAINED,
            claim(f"collectives <= {1.01 / PARTS} * alternatives", "gradients meet once a step"),
            claim(f"collective_bytes <= {1.01 / PARTS} * alternatives", "however many micro-batches there are"),
            claim("collective_bytes <= 0.51 * donated_bytes", "half of the state, once, however many devices"),
            claim("temp_bytes <= 1.1 * alternatives", "and waiting costs no memory: the sums are kept in any case"),
        ],
    )


# Fully sharded, weak: parameters and momentum are stored once, spread over the devices as the batch is.

SIZES = sizes(samples=(16, 2048), width=(64, 2048), hidden=(256, 8192), pairs=(4, 8))

MOST = 8

SHARDS, COPIES, SAMPLES = P(None, "data"), P(), P("data")


def stacked(state: Tree) -> Tree:
    """The kernels of all pairs in one array each: ``up`` [pairs, width, hidden], ``down`` [pairs, hidden, width]."""
    return {name: jax.tree.map(lambda *leaves: np.stack(leaves), *kernels) for name, kernels in state.items()}


def state_in(spec: P) -> Tree:
    kernels = {"up": spec, "down": spec}
    return {"params": kernels, "momentum": kernels}


def collecting(mesh: Mesh) -> Layers:
    """A pair of layers that collects its kernels, and leaves its results where their samples are."""
    everywhere, own = shardings(mesh, (P(), SAMPLES))

    def pair(kernels: Tree, x: jax.Array) -> jax.Array:
        collected = jax.lax.with_sharding_constraint(kernels, everywhere)
        return jax.lax.with_sharding_constraint(pair_of_layers(collected, x), own)

    return pair


def looped(pair: Layers) -> Layers:
    """Stacked pairs of layers, of which only the inputs are kept."""

    def body(x: jax.Array, kernels: Tree) -> tuple[jax.Array, None]:
        return pair(kernels, x), None

    def network(params: Tree, x: jax.Array) -> jax.Array:
        # Inside a loop nothing can merge the two computations, so the barrier against it would only cost.
        x, _ = jax.lax.scan(jax.checkpoint(body, prevent_cse=False), x, params)
        return x

    return network


def compiled(mesh: Mesh, state: Tree, pair: Layers) -> Callable[..., Any]:
    out = shardings(mesh, (state, P()))
    return jax.jit(train_step(looped(pair)), donate_argnums=0, out_shardings=out)


@on_devices(CASES, "fully-sharded-step-weak-on-{devices}-vs-gathered", (2, MOST), SIZES)
def fully_sharded(size: Extent, devices: int) -> Computation:
    """State stored once, against all on every device; the alternative is the same step with a state on each device."""
    mesh, samples = grid(data=devices), devices * size.samples
    state, *batch = make_numbers(size, samples)
    numbers = (stacked(state), *batch)
    stored, copies = state_in(SHARDS), state_in(COPIES)

    def over(devices: int) -> Alternative:
        mesh, batch = grid(data=devices), [stretched(devices * size.samples, array) for array in numbers[1:]]
        layout = shardings(mesh, (stored, SAMPLES, SAMPLES))
        return Alternative(function=compiled(mesh, stored, collecting(mesh)), args=shapes((numbers[0], *batch), layout))

    return Computation(
        subject=compiled(mesh, stored, collecting(mesh)),
        grow=Growth(over, devices=(2, 4, 8), claims=[grows("argument_bytes", "devices") <= -1])
        if devices == MOST
        else None,
        reference=gathered(train_step(looped(pair_of_layers)), mesh),
        args=jax.device_put(numbers, shardings(mesh, (stored, SAMPLES, SAMPLES))),
        carry=0,
        batch=Batch(argument=1, size=samples),
        amount=Amount(count=samples, unit="samples", series="fully sharded, weak"),
        alternatives=another(
            "data-parallel",
            compiled(mesh, copies, pair_of_layers),
            shapes(numbers, shardings(mesh, (copies, SAMPLES, SAMPLES))),
        ),
        rtol=RTOL,
        claims=[
            *TRAINED,
            claim(f"argument_bytes <= {1 / devices + 0.05} * alternatives", "parameters and momentum are stored once"),
            claim(f"peak_bytes <= {1 / devices + 0.4} * alternatives", "kernels come for one pair at a time"),
            claim("xla_flops <= 1.1 * alternatives", "the work of a device does not grow with their number"),
            claim("collective_bytes <= 3.1 * alternatives", "kernels come once for each pass, gradients go once"),
        ],
    )
