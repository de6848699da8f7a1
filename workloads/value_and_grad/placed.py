"""One forward pass against two, on one device and on eight: under ``jit``, under ``pmap``, and ``jit`` on a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, grid
from workloads.value_and_grad.network import (
    RATE,
    SIZES,
    TOLERANCE,
    Loss,
    forward_flops,
    make_batch,
    make_state,
    normalised_loss,
    plain_loss,
)

CASES = Family("value_and_grad")

DEVICES = 8

Pass = Callable[..., tuple[jax.Array, Tree, Tree]]
"""Loss, auxiliary results and gradients: (params, running, x, labels) to (loss, aux, grads)."""

LOSSES: dict[str, Callable[[str | None], Loss]] = {
    "accuracy": lambda _: plain_loss,
    "batch-statistics": normalised_loss,
}


def one_pass(loss_of: Loss) -> Pass:
    """All of it from one forward pass."""

    def run(params: Tree, *rest: Any) -> tuple[jax.Array, Tree, Tree]:
        (loss, aux), grads = jax.value_and_grad(loss_of, has_aux=True)(params, *rest)
        return loss, aux, grads

    return run


def two_passes(loss_of: Loss) -> Pass:
    """The gradients, and a second forward pass for the loss and all else."""

    def run(params: Tree, *rest: Any) -> tuple[jax.Array, Tree, Tree]:
        grads, _ = jax.grad(loss_of, has_aux=True)(params, *rest)
        loss, aux = loss_of(params, *rest)
        return loss, aux, grads

    return run


def train_step(run: Pass, axis: str | None = None) -> Callable[..., tuple[Tree, Tree]]:
    """A step of gradient descent: (state, x, labels) to (state, metrics); state is parameters and running statistics.

    Args:
        run: Gives loss, auxiliary results and gradients.
        axis: Mesh axis over which the batch is divided, where the function sees a part of it.
    """

    def step(state: Tree, x: jax.Array, labels: jax.Array) -> tuple[Tree, Tree]:
        params, running = state
        loss, aux, grads = run(params, running, x, labels)
        metrics = {"loss": loss, "accuracy": aux["accuracy"]}
        grads, metrics = jax.lax.pmean((grads, metrics), axis) if axis else (grads, metrics)
        return (descend(params, grads, RATE), aux["running"]), metrics

    return step


ONE_PASS = (
    claim("matmul_flops == analytic_flops", "one forward pass, and a backward pass of twice its work"),
    claim("matmul_flops <= 0.76 * reference", "three quarters of what two forward passes and a backward pass multiply"),
    claim("donated_bytes >= 1", "the state is donated at all"),
    claim("aliased_bytes >= donated_bytes", "auxiliary results do not keep the state from being reused"),
)


SENT_ONCE = (
    *ONE_PASS,
    # Each layer's statistics cross the mesh in each forward pass.
    claim("collectives <= 0.9 * reference", "a second forward pass would send what the first one sent"),
    claim("collective_bytes <= reference", "nor does one pass send more in any other way"),
)
"""The same, and what the devices send each other."""


def computation(
    size: Extent, jitted: Callable[[Any], Any], args: tuple[Any, ...], loss_of: Loss, **more: Any
) -> Computation:
    """One pass against two, both made ready by ``jitted``."""
    return Computation(
        subject=jitted(one_pass(loss_of)),
        reference=jitted(two_passes(loss_of)),
        args=args,
        carry=0,
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=3 * forward_flops(size),  # forward, gradients of the weights, gradients of the inputs
        rtol=TOLERANCE,
        atol=TOLERANCE,
        **more,
    )


@CASES.workload("loss-and-accuracy-under-jit-in-one-pass-vs-two", sizes=SIZES)
def under_jit(size: Extent) -> Computation:
    """On one device."""
    args = jax.device_put((make_state(size), *make_batch(size)))
    return computation(
        size,
        lambda run: jax.jit(train_step(run), donate_argnums=0),
        args,
        LOSSES["accuracy"](None),
        batch=Batch(argument=1, size=size.batch),
        claims=ONE_PASS,
    )


@CASES.workload("loss-and-batch-statistics-under-pmap-on-8-devices-in-one-pass-vs-two", sizes=SIZES, devices=DEVICES)
def under_pmap(size: Extent) -> Computation:
    """A copy of the state on each device, [devices, ...], and a part of the batch, [devices, batch / devices, ...]."""
    each = NamedSharding(grid(data=DEVICES), PartitionSpec("data"))
    state = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (DEVICES, *leaf.shape)), make_state(size))
    batch = jax.tree.map(lambda leaf: leaf.reshape(DEVICES, -1, *leaf.shape[1:]), make_batch(size))
    return computation(
        size,
        lambda run: jax.pmap(train_step(run, "data"), axis_name="data", donate_argnums=0),
        jax.device_put((state, *batch), each),
        LOSSES["batch-statistics"]("data"),
        batch=Batch(argument=1, size=size.batch // DEVICES, axis=1),
        claims=SENT_ONCE,
    )


@CASES.workload("loss-and-batch-statistics-on-a-mesh-of-8-in-one-pass-vs-two", sizes=SIZES, devices=DEVICES)
def on_a_mesh(size: Extent) -> Computation:
    """The state replicated, the batch divided; the compiler adds the communication."""
    mesh = grid(data=DEVICES)
    replicated, divided = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    shardings = {"in_shardings": (replicated, divided, divided), "out_shardings": replicated}
    args: Tree = (jax.device_put(make_state(size), replicated), *jax.device_put(make_batch(size), divided))
    return computation(
        size,
        lambda run: jax.jit(train_step(run), donate_argnums=0, **shardings),
        args,
        LOSSES["batch-statistics"](None),
        batch=Batch(argument=1, size=size.batch),
        claims=SENT_ONCE,
    )
