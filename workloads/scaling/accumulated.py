"""Data parallel with gradients accumulated over micro-batches, weak: what is sent does not grow with their number.

Each device adds up the gradients of its own micro-batches; the sums meet once, after the last. Left to shardings
alone, the loop would bring the gradients of every micro-batch together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, grid, sizes
from workloads.pjit.meshes import TRAINED, gathered, shapes, shardings
from workloads.scaling.network import PLAIN, RTOL, loss_of, make_numbers, on_devices, train_step, updated

CASES = Family("scaling")

PARTS = 4
AXIS = "data"
SIZES = sizes(samples=(64, 3072), width=(32, 2048), hidden=(128, 8192), pairs=(2, 4))

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


def compiled(mesh: Mesh, averages: Averages) -> Callable[..., Any]:
    """The step, each device with its samples."""
    spread = jax.shard_map(averages, mesh=mesh, in_specs=(P(), P(AXIS), P(AXIS)), out_specs=P())

    def step(state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = spread(state["params"], x, y)
        return updated(state, grads), loss

    return jax.jit(step, donate_argnums=0, out_shardings=shardings(mesh, (P(), P())))


@on_devices(CASES, "accumulating-step-weak-on-{devices}-vs-gathered", (2, 8), SIZES)
def accumulating(size: Extent, devices: int) -> Computation:
    """One exchange a step, against the whole batch at once everywhere; the alternative exchanges in each micro-batch."""
    mesh, samples = grid(data=devices), devices * size.samples
    numbers = make_numbers(size, samples)
    state = jax.tree.map(lambda _: P(), numbers[0])
    layout = shardings(mesh, (state, P(AXIS), P(AXIS)))
    return Computation(
        subject=compiled(mesh, ONCE),
        reference=gathered(train_step(), mesh),
        args=jax.device_put(numbers, layout),
        carry=0,
        batch=Batch(argument=1, size=samples),
        amount=Amount(count=samples, unit="samples", series="data-parallel with accumulation, weak"),
        alternatives={"each-time": Alternative(function=compiled(mesh, EACH_TIME), args=shapes(numbers, layout))},
        rtol=RTOL,
        claims=[
            *TRAINED,
            claim(
                f"collectives <= {1.01 / PARTS} * alternatives", "gradients meet once a step, not in each micro-batch"
            ),
            claim(f"collective_bytes <= {1.01 / PARTS} * alternatives", "however many micro-batches there are"),
            claim("collective_bytes <= 0.51 * donated_bytes", "half of the state, once, however many devices"),
            claim("temp_bytes <= 1.1 * alternatives", "and waiting costs no memory: the sums are kept in any case"),
        ],
    )
