"""`value_and_grad` with `has_aux`: loss, gradients and all else that the forward pass knows, from one forward pass.

Loss, gradients, metrics and new batch statistics from one forward pass (`value_and_grad(loss, has_aux=True)`) against
`grad` with a second forward pass: under `jit`, under `pmap`, on a mesh; with `argnums` over two arguments against a
`grad` for each; one program against two in a training loop. The mistake: a second forward pass, a third more
multiplications (4 against 3 passes' worth) and its collectives again. Two equal passes in one program without a loop
are shared by the compiler and cost nothing; behind a `lax.scan`, or in two programs, nothing is shared. Source:
"Evaluate a function and its gradient using value_and_grad" in JAX's autodiff cookbook.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, grid, over_samples, sizes, squared_error

CASES = Family("value_and_grad")

RATE = 0.1  # of plain gradient descent
MOMENTUM = 0.9  # of the running statistics
TOLERANCE = 1e-3
"""Relative and absolute, of subject and reference: with products in fewer bits a few of thousands of samples may change sides in a tie."""

Loss = Callable[..., tuple[jax.Array, Tree]]
"""A loss with auxiliary results: (params, running, x, labels) to (loss, aux)."""

SIZES = sizes(batch=(64, 4096), width=(64, 4096), layers=(4, 8), classes=(16, 1024))
"""A classifier with ``layers`` square layers, and the samples of one step, on all devices together."""


def forward_flops(size: Extent) -> int:
    return 2 * size.batch * size.width * (size.layers * size.width + size.classes)


def make_state(size: Extent) -> Tree:
    """Draw parameters ([layers, width, width], [width, classes]) and running statistics [layers, width]; NumPy arrays."""
    draw = drawing()
    scale = np.float32(size.width**-0.5)
    kernels = scale * draw((size.layers, size.width, size.width))
    params = {"kernels": kernels, "head": scale * draw((size.width, size.classes))}
    lines = (size.layers, size.width)
    return params, {"mean": np.zeros(lines, np.float32), "square": np.ones(lines, np.float32)}


def make_batch(size: Extent) -> tuple[Any, Any]:
    """Draw inputs [batch, width] and integer labels [batch]; NumPy arrays."""
    labels = np.random.default_rng(1).integers(size.classes, size=size.batch, dtype=np.int32)
    return drawing(2)((size.batch, size.width)), labels


def measured(logits: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """Loss and accuracy of logits [batch, classes]."""
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return loss, {"accuracy": (logits.argmax(-1) == labels).mean()}


def plain_loss(params: Tree, running: Tree, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """A loss whose auxiliary result is the accuracy; its layers are one loop."""
    hidden, _ = jax.lax.scan(lambda h, kernel: (jnp.tanh(h @ kernel), None), x, params["kernels"])
    loss, aux = measured(hidden @ params["head"], labels)
    return loss, {**aux, "running": running}


def normalised_loss(axis: str | None = None) -> Loss:
    """A loss with batch normalisation: the new running statistics are an auxiliary result too.

    Args:
        axis: Mesh axis over which the batch is divided, where the function sees a part of it.
    """

    def layer(hidden: jax.Array, kernel: jax.Array) -> tuple[jax.Array, Tree]:
        hidden = hidden @ kernel
        seen = {"mean": hidden.mean(0), "square": (hidden**2).mean(0)}
        seen = jax.lax.pmean(seen, axis) if axis else seen
        deviation = jnp.sqrt(seen["square"] - seen["mean"] ** 2 + 1e-3)
        return jnp.tanh((hidden - seen["mean"]) / deviation), seen

    def loss_of(params: Tree, running: Tree, x: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
        hidden, seen = jax.lax.scan(layer, x, params["kernels"])
        loss, aux = measured(hidden @ params["head"], labels)
        new = jax.tree.map(lambda old, now: MOMENTUM * old + (1 - MOMENTUM) * now, running, seen)
        return loss, {**aux, "running": new}

    return loss_of


# One forward pass against two, on one device and on eight.

DEVICES = 8

Pass = Callable[..., tuple[jax.Array, Tree, Tree]]
"""Loss, auxiliary results and gradients: (params, running, x, labels) to (loss, aux, grads)."""

LOSSES: dict[str, Callable[[str | None], Loss]] = {
    "accuracy": lambda _: plain_loss,
    "batch-statistics": normalised_loss,
}


def one_pass(loss_of: Loss) -> Pass:
    def run(params: Tree, *rest: Any) -> tuple[jax.Array, Tree, Tree]:
        (loss, aux), grads = jax.value_and_grad(loss_of, has_aux=True)(params, *rest)
        return loss, aux, grads

    return run


def two_passes(loss_of: Loss) -> Pass:
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


# Where a second forward pass costs what it looks like.


@CASES.workload("loss-and-metrics-from-one-program-vs-two", sizes=SIZES)
def two_programs(size: Extent) -> Computation:
    """A training loop's body on the host: one program, against one for the step and one for the metrics before it."""
    step = jax.jit(train_step(one_pass(plain_loss)))
    metrics_of = jax.jit(plain_loss)

    def one_call(state: Tree, x: jax.Array, labels: jax.Array) -> tuple[Tree, Tree]:
        state, metrics = step(state, x, labels)
        return state, metrics

    def two_calls(state: Tree, x: jax.Array, labels: jax.Array) -> tuple[Tree, Tree]:
        loss, aux = metrics_of(*state, x, labels)
        state, _ = step(state, x, labels)
        return state, {"loss": loss, "accuracy": aux["accuracy"]}

    args: tuple[Any, ...] = jax.device_put((make_state(size), *make_batch(size)))
    return Computation(
        subject=one_call,
        reference=two_calls,
        args=args,
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        rtol=TOLERANCE,
        atol=TOLERANCE,
        eager=True,
        claims=[
            claim("launches == 1", "the step returns loss and metrics with the new state"),
            claim("launches <= 0.5 * reference", "a second program computes the metrics again"),
            claim("host_transfers == 0", "and nothing is sent to the device between"),
        ],
    )


# Gradients of several arguments.


def through(kernels: jax.Array, x: jax.Array) -> jax.Array:
    hidden, _ = jax.lax.scan(lambda h, kernel: (jnp.tanh(h @ kernel), None), x, kernels)
    return hidden


def reconstruction(encoder: jax.Array, decoder: jax.Array, x: jax.Array) -> tuple[jax.Array, Tree]:
    """The error of an autoencoder, and what its code looks like."""
    code = through(encoder, x)
    return squared_error(through(decoder, code), x), {"code_scale": jnp.abs(code).mean()}


def together(encoder: jax.Array, decoder: jax.Array, x: jax.Array) -> tuple[Any, ...]:
    """A step of gradient descent on both, from one pass."""
    (loss, aux), grads = jax.value_and_grad(reconstruction, argnums=(0, 1), has_aux=True)(encoder, decoder, x)
    return (*descend((encoder, decoder), grads, RATE), loss, aux)


def one_by_one(encoder: jax.Array, decoder: jax.Array, x: jax.Array) -> tuple[Any, ...]:
    """The same step, each argument's gradient by itself, and loss and auxiliary results by themselves."""
    of_encoder, _ = jax.grad(reconstruction, argnums=0, has_aux=True)(encoder, decoder, x)
    of_decoder, _ = jax.grad(reconstruction, argnums=1, has_aux=True)(encoder, decoder, x)
    loss, aux = reconstruction(encoder, decoder, x)
    return (*descend((encoder, decoder), (of_encoder, of_decoder), RATE), loss, aux)


@CASES.workload("gradients-of-two-arguments-together-vs-one-by-one", sizes=SIZES)
def two_arguments(size: Extent) -> Computation:
    """Encoder and decoder trained together, donated both."""
    draw = drawing()
    shape = (size.layers, size.width, size.width)
    encoder, decoder = (size.width**-0.5 * draw(shape) for _ in range(2))
    args = jax.device_put((encoder, decoder, draw((size.batch, size.width))))
    return Computation(
        subject=jax.jit(together, donate_argnums=(0, 1)),
        reference=jax.jit(one_by_one, donate_argnums=(0, 1)),
        args=args,
        grow=over_samples(args, 2),
        carry=(0, 1),
        batch=Batch(argument=2, size=size.batch),
        # Each layer of both: forward, gradient of the kernel, gradient of the input.
        analytic_flops=3 * 2 * size.layers * 2 * size.batch * size.width**2,
        claims=[
            claim("matmul_flops == analytic_flops", "one forward, one backward pass through both"),
            claim("matmul_flops <= 0.56 * reference", "6 products in the place of 11: nothing is repeated"),
            claim("donated_bytes >= 1", "both arguments are donated"),
            claim("aliased_bytes >= donated_bytes", "each takes its new value"),
        ],
    )
