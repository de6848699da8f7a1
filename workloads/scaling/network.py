"""A network and its step of gradient descent with momentum, data-parallel and tensor-parallel, by number of devices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Draw, Extent, Tree, another, descend, drawing, fused_on_gpu, grid, sizes
from workloads.pjit.mlp import TRAINED, gathered, shapes, shardings

CASES = Family("scaling")

RATE = 0.01
MOMENTUM = 0.9

RTOL = 1e-3
"""Between a step of several devices and of one: sums are taken in another order, on GPUs of products in TF32."""

Layers = Callable[[Tree, jax.Array], jax.Array]
"""A pair of layers, or several: kernels and x [batch, width] to [batch, width]."""


def make_numbers(size: Extent, samples: int, draw: Draw | None = None) -> tuple[Tree, Any, Any]:
    """Draw the state, inputs and targets [samples, width]; NumPy arrays, or what another ``draw`` gives.

    Of each pair the state has, as parameters and as momentum, ``up`` [width, hidden] and ``down`` [hidden, width].
    """
    draw, width, hidden = draw or drawing(), size.width, size.hidden

    def kernels(scale: float) -> list[dict[str, Any]]:
        up, down = np.float32(scale * width**-0.5), np.float32(scale * hidden**-0.5)
        return [{"up": up * draw((width, hidden)), "down": down * draw((hidden, width))} for _ in range(size.pairs)]

    state = {"params": kernels(1.0), "momentum": kernels(0.1)}
    return state, draw((samples, width)), draw((samples, width))


def pair_of_layers(kernels: Tree, x: jax.Array) -> jax.Array:
    """Two layers beside a residual: x [batch, width] to [batch, width]."""
    return x + jnp.tanh(x @ kernels["up"]) @ kernels["down"]


def one_by_one(pair: Layers) -> Layers:
    def network(params: Tree, x: jax.Array) -> jax.Array:
        for kernels in params:
            x = pair(kernels, x)
        return x

    return network


def loss_of(network: Layers) -> Callable[[Tree, jax.Array, jax.Array], jax.Array]:
    """Half the squared distance between results and targets [batch, width], its mean over the batch."""

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        return 0.5 * jnp.mean(jnp.sum((network(params, x) - y) ** 2, axis=-1))

    return loss


def updated(state: Tree, grads: Tree) -> Tree:
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, state["momentum"], grads)
    return {"params": descend(state["params"], momentum, RATE), "momentum": momentum}


PLAIN = one_by_one(pair_of_layers)


def train_step(network: Layers = PLAIN) -> Callable[..., tuple[Tree, jax.Array]]:
    def step(state: Tree, x: jax.Array, y: jax.Array) -> tuple[Tree, jax.Array]:
        loss, grads = jax.value_and_grad(loss_of(network))(state["params"], x, y)
        return updated(state, grads), loss

    return step


def on_devices(
    family: Family, sentence: str, counts: Iterable[int], sizes: Mapping[Any, Extent]
) -> Callable[[Any], Any]:
    """Add a case for each number of devices, which stands in the sentence as ``{devices}``."""

    def add(build: Any) -> Any:
        for count in counts:
            named = sentence.format(devices="1-device" if count == 1 else f"{count}-devices")
            family.workload(named, sweep=[{"devices": count}], sizes=sizes, devices=count)(build)
        return build

    return add


# Data parallel: parameters on every device, the batch spread over them, gradients summed once a step.

WEAK = sizes(samples=(64, 3072), width=(32, 2048), hidden=(128, 8192), pairs=(2, 4))
STRONG = sizes(WEAK, samples=(256, 16384))

STATE, SAMPLES = P(), P("data")


def compiled(mesh: Mesh) -> Callable[..., Any]:
    return jax.jit(train_step(), donate_argnums=0, out_shardings=shardings(mesh, (STATE, P())))


def data_parallel(size: Extent, devices: int, samples: int, series: str, claims: Sequence[Claim]) -> Computation:
    """A batch of ``samples`` spread over the devices, against all of it on each of them."""
    mesh = grid(data=devices)
    numbers = make_numbers(size, samples)
    spread = jax.device_put(numbers[1:], shardings(mesh, SAMPLES))
    return Computation(
        subject=compiled(mesh),
        reference=gathered(train_step(), mesh),
        args=(jax.device_put(numbers[0], shardings(mesh, STATE)), *spread),
        carry=0,
        batch=Batch(argument=1, size=samples),
        amount=Amount(count=samples, unit="samples", series=series),
        rtol=RTOL,
        claims=[*TRAINED, *exchanged(devices), *claims],
    )


COUNTS = (1, 2, 4, 8)


@on_devices(CASES, "data-parallel-step-strong-on-{devices}-vs-gathered", COUNTS, STRONG)
def strong(size: Extent, devices: int) -> Computation:
    return data_parallel(
        size,
        devices,
        size.samples,
        "data-parallel, strong",
        claims=[
            claim(f"xla_flops <= {1.2 / devices} * reference", "a device works on its share, once"),
            claim(f"temp_bytes <= {1 / devices + 0.3} * reference", "activations of its share"),
        ],
    )


@on_devices(CASES, "data-parallel-step-weak-on-{devices}-vs-gathered", COUNTS, WEAK)
def weak(size: Extent, devices: int) -> Computation:
    """The same share for each device; the alternative is one device with its share."""
    alone = grid(data=1)
    numbers = make_numbers(size, size.samples)
    share = shapes(numbers[1:], shardings(alone, (SAMPLES, SAMPLES)))
    state = jax.tree.map(lambda leaf: shapes(leaf, shardings(alone, STATE)), numbers[0])
    claims = [
        claim("xla_flops <= 1.1 * alternatives", "the work of a device does not grow with their number"),
        claim("peak_bytes <= 1.35 * alternatives", "nor does its memory, but for gradients on their way"),
    ]
    return replace(
        data_parallel(size, devices, devices * size.samples, "data-parallel, weak", claims),
        alternatives=another("one-device", compiled(alone), (state, *share)),
    )


def exchanged(devices: int) -> tuple[Claim, ...]:
    """What a data-parallel step may send, on any number of devices."""
    if devices == 1:
        return (claim("collectives == 0", "one device has nobody to talk to"),)
    return (
        # Half of the state is parameters; the loss is a few bytes more.
        claim("collective_bytes <= 0.51 * donated_bytes", "gradients are sent once, however many devices"),
    )


# Tensor parallel, strong: each device holds a part of every kernel, the same batch is on all of them.

PAIRS = 2
SIZES = sizes(samples=(64, 4096), width=(64, 4096), hidden=(256, 16384), pairs=PAIRS)
"""As many samples as features and four times the hidden units in both: the claims on what is sent are shares."""

BY_COLUMNS, BY_ROWS = P(None, "model"), P("model")
KERNELS = [{"up": BY_COLUMNS, "down": BY_ROWS}] * PAIRS
PARTS = {"params": KERNELS, "momentum": KERNELS}
WHOLE = P()
FEWEST = 2  # devices that share a state


def pair_in_parts(mesh: Mesh, across: str | None = None) -> Layers:
    """A pair of layers of which each device has some hidden units: x [batch, width] to [batch, width]."""
    units, everywhere = shardings(mesh, (P(across, "model"), P(across) if across else WHOLE))

    def pair(kernels: Tree, x: jax.Array) -> jax.Array:
        hidden = jax.lax.with_sharding_constraint(jnp.tanh(x @ kernels["up"]), units)
        return x + jax.lax.with_sharding_constraint(hidden @ kernels["down"], everywhere)

    return pair


def compiled_parts(mesh: Mesh, across: str | None = None) -> Callable[..., Any]:
    """The step; all samples are on each device, or spread across another axis of the mesh."""
    network = one_by_one(pair_in_parts(mesh, across))
    return jax.jit(train_step(network), donate_argnums=0, out_shardings=shardings(mesh, (PARTS, P())))


@on_devices(CASES, "tensor-parallel-step-strong-on-{devices}-vs-gathered", (FEWEST, 8), SIZES)
def tensor_parallel(size: Extent, devices: int) -> Computation:
    """A part of each kernel on each device, against all of them on each; the alternative holds everything on one."""
    mesh, alone = grid(model=devices), grid(model=1)
    numbers = make_numbers(size, size.samples)
    layout = shardings(mesh, (PARTS, WHOLE, WHOLE))
    return Computation(
        subject=compiled_parts(mesh),
        reference=gathered(train_step(), mesh),
        args=jax.device_put(numbers, layout),
        carry=0,
        batch=Batch(argument=1, size=size.samples),
        amount=Amount(count=size.samples, unit="samples", series="tensor-parallel, strong"),
        alternatives=another(
            "one-device",
            jax.jit(train_step(), donate_argnums=0),
            shapes(numbers, shardings(alone, (PARTS, WHOLE, WHOLE))),
        ),
        rtol=RTOL,
        claims=claims(devices),
    )


def claims(devices: int) -> tuple[Claim, ...]:
    """What more devices must give to the same network, on any hardware."""
    # Sums of [batch, width], one forward and one backward for each pair, but for the inputs' own gradient; over a
    # device's part of a state of 16 [width, width] for each pair.
    share = (2 * PAIRS - 1) / (16 * PAIRS / devices)
    return (
        *TRAINED,
        claim(f"xla_flops <= {1.2 / devices} * alternatives", "a device works on its hidden units, none of them twice"),
        claim(f"argument_bytes <= {1 / devices + 0.1} * alternatives", "and holds their kernels alone"),
        claim(
            f"peak_bytes <= {1 / devices + 0.25} * alternatives",
            "and their results, beside those that all have",
            known_break=fused_on_gpu() if devices == FEWEST else None,
        ),
        claim(f"collective_bytes <= {1.05 * share} * donated_bytes", "results are summed once for each pair and pass"),
    )
