"""A residual network (ResNet-50 where it is large) in Flax NNX, trained by SGD with momentum.

Model and optimiser travel together, as the state of two modules that is merged inside the step; the statistics of its
batch normalisation are a part of that state and go from step to step.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from jaxgate import Amount, Claim, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, over_samples, sizes
from workloads.training.states import ALWAYS, cross_entropy, filled, stepping

CASES = Family("training")

RATE, MOMENTUM = 0.1, 0.9
KEPT = 0.9
"""Share of a running statistic that a step keeps."""
EPSILON = 1e-5
EXPANSION = 4
"""How many times wider a block's result is than what it computes with."""

SIZES = sizes(
    batch=(8, 64),  # images of one step, ``image`` x ``image`` pixels of three colours
    image=(32, 224),
    stem=(3, 7),  # pixels along each side of the first kernel
    width=(16, 64),  # channels that the first stage computes with; each other stage has twice those of the one before
    stages=((1, 1), (3, 4, 6, 3)),  # blocks in each stage
    classes=(10, 1000),
    dtype=("float32", "bfloat16"),  # type of activations and products; parameters and statistics are float32
    tolerance=(1e-3, 0.5),
)

BY_HAND = sizes(SIZES, stages=((1, 1), (1, 1, 1, 1)), dtype="float32", tolerance=(1e-3, 5e-2))
"""In float32 and less deep, so that two ways to write a step agree closely enough for a check."""


def blocks_of(size: Extent) -> tuple[tuple[int, int, int], ...]:
    """Of each block its channels on the way in, those that it computes with, and its stride."""
    found, inputs = [], size.width
    for stage, count in enumerate(size.stages):
        width = size.width * 2**stage
        for index in range(count):
            found.append((inputs, width, 2 if stage and not index else 1))
            inputs = width * EXPANSION
    return tuple(found)


def step_flops(size: Extent) -> int:
    """Three times the forward pass, but for the first product: nobody asks for the gradient of an image."""
    side = size.image // 2
    first = 2 * size.batch * side**2 * size.stem**2 * 3 * size.width
    side //= 2
    rest = 0
    for inputs, width, stride in blocks_of(size):
        rest += side**2 * inputs * width
        side //= stride
        rest += side**2 * (9 * width**2 + width * width * EXPANSION)
        rest += side**2 * inputs * width * EXPANSION if _widens(inputs, width, stride) else 0
    head = blocks_of(size)[-1][1] * EXPANSION * size.classes
    return 2 * first + 3 * 2 * size.batch * (rest + head)


def _widens(inputs: int, width: int, stride: int) -> bool:
    """Whether what goes past a block has to be projected to be added to its result."""
    return stride > 1 or inputs != width * EXPANSION


class Normalised(nnx.Module):  # type: ignore[misc]  # flax is partly typed, differently on each line
    """A convolution whose results are normalised over the batch."""

    def __init__(self, inputs: int, outputs: int, side: int, *, stride: int, dtype: str, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(inputs, outputs, (side, side), strides=stride, use_bias=False, dtype=dtype, rngs=rngs)
        self.norm = nnx.BatchNorm(outputs, momentum=KEPT, epsilon=EPSILON, dtype=dtype, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Run it: x [batch, height, width, inputs] to [batch, height / stride, width / stride, outputs]."""
        return self.norm(self.conv(x))


class Bottleneck(nnx.Module):  # type: ignore[misc]
    """Narrow, convolve, widen, and add what came in."""

    def __init__(self, inputs: int, width: int, stride: int, dtype: str, rngs: nnx.Rngs) -> None:
        outputs = width * EXPANSION
        self.narrow = Normalised(inputs, width, 1, stride=1, dtype=dtype, rngs=rngs)
        self.middle = Normalised(width, width, 3, stride=stride, dtype=dtype, rngs=rngs)
        self.widen = Normalised(width, outputs, 1, stride=1, dtype=dtype, rngs=rngs)
        widens = _widens(inputs, width, stride)
        self.past = Normalised(inputs, outputs, 1, stride=stride, dtype=dtype, rngs=rngs) if widens else None

    def __call__(self, x: jax.Array) -> jax.Array:
        """Run one block: x [batch, height, width, inputs] to [batch, height / stride, width / stride, outputs]."""
        past = x if self.past is None else self.past(x)
        return jax.nn.relu(self.widen(jax.nn.relu(self.middle(jax.nn.relu(self.narrow(x))))) + past)


class ResNet(nnx.Module):  # type: ignore[misc]
    """A first convolution, stages of blocks, and a class read from the average over all pixels."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        self.stem = Normalised(3, size.width, size.stem, stride=2, dtype=size.dtype, rngs=rngs)
        self.blocks = nnx.List([Bottleneck(*block, size.dtype, rngs) for block in blocks_of(size)])
        self.head = nnx.Linear(blocks_of(size)[-1][1] * EXPANSION, size.classes, dtype=size.dtype, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        """Classify: images [batch, image, image, 3] to [batch, classes]."""
        x = nnx.max_pool(jax.nn.relu(self.stem(images)), (3, 3), strides=(2, 2), padding="SAME")
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


def modules(size: Extent) -> tuple[ResNet, nnx.Optimizer]:
    def make() -> tuple[ResNet, nnx.Optimizer]:
        model = ResNet(size, nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.sgd(RATE, momentum=MOMENTUM), wrt=nnx.Param)

    return nnx.eval_shape(make)


def nnx_step(size: Extent) -> Callable[..., tuple[nnx.State, jax.Array]]:
    """One step of the two modules as a pure function of their state: split once, merged inside."""
    definition, _ = nnx.split(modules(size))

    def step(state: nnx.State, images: jax.Array, labels: jax.Array) -> tuple[nnx.State, jax.Array]:
        model, optimizer = nnx.merge(definition, state)
        loss, grads = nnx.value_and_grad(lambda model: cross_entropy(model(images), labels))(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    return step


def _plain_normalised(layer: Tree, x: jax.Array, stride: int, dtype: str) -> tuple[jax.Array, Tree]:
    """Do what ``Normalised`` does; new running statistics beside the result."""
    kernel, norm = layer["conv"]["kernel"].astype(dtype), layer["norm"]
    dims = ("NHWC", "HWIO", "NHWC")
    x = jax.lax.conv_general_dilated(x.astype(dtype), kernel, (stride, stride), "SAME", dimension_numbers=dims)
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    var = (wide**2).mean((0, 1, 2)) - mean**2
    x = ((wide - mean) * jax.lax.rsqrt(var + EPSILON) * norm["scale"] + norm["bias"]).astype(dtype)
    running = {name: KEPT * norm[name] + (1 - KEPT) * new for name, new in (("mean", mean), ("var", var))}
    return x, {"norm": running}


def _plain_block(block: Tree, x: jax.Array, stride: int, dtype: str) -> tuple[jax.Array, Tree]:
    """Do what ``Bottleneck`` does."""
    inner, running = x, {}
    for name, by in (("narrow", 1), ("middle", stride), ("widen", 1)):
        inner, running[name] = _plain_normalised(block[name], inner, by, dtype)
        inner = inner if name == "widen" else jax.nn.relu(inner)
    if "past" in block:
        x, running["past"] = _plain_normalised(block["past"], x, stride, dtype)
    return jax.nn.relu(inner + x), running


def plain_loss(size: Extent, model: Tree, images: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    x, stem = _plain_normalised(model["stem"], images, 2, size.dtype)
    # The lowest value as a plain number: JAX knows the gradient of a maximum only if it sees that it is one.
    x = jax.lax.reduce_window(jax.nn.relu(x), -np.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    blocks = {}
    for index, (_, _, stride) in enumerate(blocks_of(size)):
        x, blocks[index] = _plain_block(model["blocks"][index], x, stride, size.dtype)
    logits = x.mean((1, 2)) @ model["head"]["kernel"].astype(size.dtype) + model["head"]["bias"].astype(size.dtype)
    scores = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1)), {"stem": stem, "blocks": blocks}


def plain_step(size: Extent) -> Callable[..., tuple[nnx.State, jax.Array]]:
    def step(state: nnx.State, images: jax.Array, labels: jax.Array) -> tuple[nnx.State, jax.Array]:
        tree = nnx.to_pure_dict(state)
        model, momentum = tree[0], tree[1]["opt_state"][0]["trace"]
        forward = partial(plain_loss, size)
        (loss, running), grads = jax.value_and_grad(forward, has_aux=True)(model, images, labels)

        def moved(old: Tree, trace: Tree, grad: Tree, new: Tree) -> tuple[Tree, Tree]:
            """Walk down to the arrays: parameters have a momentum, statistics have a new value instead."""
            if not isinstance(old, dict):
                trace = grad + MOMENTUM * trace
                return old - RATE * trace, trace
            after = {
                name: moved(part, trace[name], grad[name], new.get(name, {})) if name in trace else (new[name], None)
                for name, part in old.items()
            }
            return {name: pair[0] for name, pair in after.items()}, {
                n: pair[1] for n, pair in after.items() if n in trace
            }

        model, momentum = moved(model, momentum, grads, running)
        optimizer = {"opt_state": {0: {"trace": momentum}}, "step": tree[1]["step"] + 1}
        result = jax.tree.map(lambda leaf: leaf, state)
        nnx.replace_by_pure_dict(result, {0: model, 1: optimizer})
        return result, loss

    return step


def make_args(size: Extent) -> tuple[Any, ...]:
    state = filled(nnx.split(modules(size))[1])
    images = drawing(1)((size.batch, size.image, size.image, 3))
    labels = np.random.default_rng(2).integers(0, size.classes, size.batch, dtype=np.int32)
    return jax.device_put((state, images, labels))


def compared(size: Extent, reference: Callable[..., Any], claims: Sequence[Claim]) -> Computation:
    args = make_args(size)
    return stepping(
        jax.jit(nnx_step(size), donate_argnums=0),
        reference,
        args,
        flops=step_flops(size),
        amount=Amount(count=size.batch, unit="images"),
        tolerance=size.tolerance,
        claims=claims,
        grow=over_samples(args, 1, 2),
    )


@CASES.workload("resnet-step-with-batch-statistics-in-nnx-vs-threaded-by-hand", sizes=BY_HAND)
def by_hand(size: Extent) -> Computation:
    claims = [
        *ALWAYS,
        claim("matmul_flops == reference", "statistics come from the forward pass of the step, not from another"),
        claim("argument_bytes == reference", "and the modules hold no other state"),
        claim("temp_bytes <= 1.5 * reference", "modules are gone once the step is traced"),
        claim("xla_flops <= 1.25 * reference", "and so is the optimiser's chain of transformations"),
    ]
    return compared(size, jax.jit(plain_step(size), donate_argnums=0), claims)
