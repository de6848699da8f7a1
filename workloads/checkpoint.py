"""Checkpoints: a state that is fetched at once, comes back where it was, and steps on without another compile.

Fetched leaf by leaf, each array waits for the one before. Restored, a state must arrive as it left: the same types, no
weak ones, committed to the same devices, each device with its own shards. Otherwise the first step is compiled again, or
keeps two states, and nothing says so. Mistakes it catches: a step count that comes back as a Python number (a retrace),
leaves that stay NumPy arrays and are sent in every step (`host_transfers`), a restored state that is not donated
(`aliased_bytes`), shards that every device gets all of (`argument_bytes`). `gate_loop` looks at a whole job, with its files.
Sources: reports spd#932 and orbax#1640; JAX's page on distributed arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Batch, Computation, Family, Growth, claim, grows
from workloads.parts import Extent, Tree, drawing, grid, mlp, mlp_params, sizes, squared_error

CASES = Family("checkpoint")

DEVICES = 8
SQUARE = 2
"""How the parameters grow with the width."""

SIZES = sizes(width=(64, 2048), layers=(3, 8), batch=(16, 256), rtol=(1e-3, 2e-2))
"""A network of ``width`` and a batch for it."""

ADAM = optax.adam(1e-3)


def step(state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
    """One step of Adam: state with ``params``, ``optimiser`` and the number of the ``step``; x and y [batch, width]."""
    loss, grads = jax.value_and_grad(lambda params: squared_error(mlp(params, x), y))(state["params"])
    updates, optimiser = ADAM.update(grads, state["optimiser"], state["params"])
    params = optax.apply_updates(state["params"], updates)
    return {"params": params, "optimiser": optimiser, "step": state["step"] + 1}, loss


def draw_inputs(size: Extent) -> tuple[Tree, Any, Any]:
    """Draw a state and a batch, as NumPy arrays."""
    draw = drawing()
    params = mlp_params(draw, size.width, size.layers)
    optimiser = jax.tree.map(np.zeros_like, ADAM.init(params))
    state = {"params": params, "optimiser": optimiser, "step": np.int32(0)}
    return state, draw((size.batch, size.width)), draw((size.batch, size.width))


def saved(state: Tree) -> Tree:
    """Fetch a state, all leaves at once."""
    return jax.device_get(state)


def restored(kept: Tree, like: Tree) -> Tree:
    """Put a state back where it was."""
    return jax.device_put(kept, jax.tree.map(lambda leaf: leaf.sharding, like))


def one_by_one(kept: Tree, like: Tree) -> Tree:
    """Put a state back leaf by leaf, wherever JAX wants it, a scalar as the Python number that a file of text has."""
    del like
    return jax.tree.map(lambda leaf: leaf.item() if leaf.ndim == 0 else jnp.asarray(leaf), kept)


@CASES.workload("state-put-back-between-two-steps-at-once-vs-leaf-by-leaf", sizes=SIZES)
def between(size: Extent) -> Computation:
    def job(back: Callable[[Tree, Tree], Tree]) -> Callable[..., Any]:
        run = jax.jit(step)

        def resumed(state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
            state, _ = run(state, x, y)
            return run(back(saved(state), state), x, y)

        return resumed

    return Computation(
        subject=job(restored),
        reference=job(one_by_one),
        args=jax.device_put(draw_inputs(size)),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        eager=True,
        claims=[
            claim("compiles == 1", "the restored state needs no program of its own"),
            claim("launches == 2", "and nothing runs beside the steps"),
        ],
    )


@CASES.workload("step-after-a-restore-donated-vs-copied", sizes=SIZES)
def after(size: Extent) -> Computation:
    kept, x, y = draw_inputs(size)
    here = jax.device_put(kept)
    args = (restored(kept, here), *jax.device_put((x, y)))

    def wider(width: int) -> tuple[Any, ...]:
        shapes = draw_inputs(Extent(width=width, layers=size.layers, batch=size.batch))
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), shapes)

    return Computation(
        subject=jax.jit(step, donate_argnums=0),
        reference=jax.jit(step),
        args=args,
        carry=0,
        grow=Growth(
            wider, width=[size.width // 2, size.width, 2 * size.width], claims=[grows("temp_bytes", "width") <= SQUARE]
        ),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=1e-5,
        claims=[
            claim("aliased_bytes >= donated_bytes", "every leaf of the restored state is taken over"),
            claim("peak_bytes <= 0.85 * reference", "there is one state, not two"),
            claim("matmul_flops == reference", "one forward and one backward pass"),
        ],
    )


@CASES.workload("state-restored-to-its-shards-on-8-devices-vs-whole-on-each", sizes=SIZES, devices=DEVICES)
def shards(size: Extent) -> Computation:
    """Each device gets its rows of every array, as it had them; the alternative has all of them everywhere."""
    mesh = grid(data=DEVICES)
    kept, x, y = draw_inputs(size)
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    layout = jax.tree.map(lambda leaf: rows if leaf.ndim else everywhere, kept)
    x, y = jax.device_put((x, y), rows)
    place = partial(jax.device_put, kept)
    return Computation(
        subject=jax.jit(step, donate_argnums=0, out_shardings=(layout, everywhere)),
        reference=jax.jit(step, out_shardings=(everywhere, everywhere)),
        args=(place(layout), x, y),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=1e-5,
        claims=[
            claim("replicated_bytes <= 64", "no device has what another one has, but for the numbers of the steps"),
            claim("aliased_bytes >= donated_bytes", "every shard is taken over"),
            claim("output_bytes <= 0.2 * reference", "an eighth of the state for each device"),
        ],
    )
