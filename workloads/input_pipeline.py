"""What comes before the step, and between steps: batches on their way to the device, and how their images lie.

Ids say `input`. A training loop's body on the host, whose batches are stacked by NumPy and sent ahead of the step that
needs them, against a collate function that calls `jnp.asarray` on every example (`host_transfers`, `launches`: a
transfer for each example, and programs to stack them); augmentation inside the step against eager operations before it;
several steps in one `lax.scan` against a call for each. Layout: convolutions with the channels last against channels
first (`stablehlo_ops`: transposes that a compiler has to find a way around; whether it does is its own affair, so no
time is claimed). Mistakes it catches: all of these come back; the last batch is dropped, or what was sent ahead is
forgotten at the end; the loss is read at every step. What prefetching gains is seen on accelerators only: on a CPU
nothing is on its way. Sources: JAX's pages "Asynchronous dispatch" and `jax.device_put`; Flax's `prefetch_to_device`;
NVIDIA's guide to convolutional layers for layouts.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgate import Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, over_samples, sizes, squared_error

CASES = Family("input_pipeline")

RATE = 0.05
STEPS = 4  # of one call, in either size: claims say how many programs that is
AHEAD = 2
"""Batches that are on their way to the device while a step runs."""

Examples = tuple[Any, Any]
"""Images [examples, side, side, 3] as bytes and labels [examples]."""

SIZES = sizes(
    batch=(8, 256),  # images of one step, ``side`` x ``side`` pixels of three colours
    steps=STEPS,  # batches of one call
    side=(16, 224),
    hidden=(32, 256),  # units between the pixels and the classes
    classes=(10, 1000),
    tolerance=(1e-4, 2e-2),
)
"""Extents of the data, and of a classifier with one hidden layer."""


def pixels(size: Extent) -> int:
    return size.side**2 * 3


def make_params(size: Extent) -> Tree:
    draw = drawing()
    return {
        "up": np.float32(pixels(size) ** -0.5) * draw((pixels(size), size.hidden)),
        "out": np.float32(size.hidden**-0.5) * draw((size.hidden, size.classes)),
    }


def make_examples(size: Extent, count: int) -> Examples:
    """Draw images [count, side, side, 3] as bytes and labels [count]."""
    numbers = np.random.default_rng(1)
    images = numbers.integers(0, 256, (count, size.side, size.side, 3), dtype=np.uint8)
    return images, numbers.integers(0, size.classes, count, dtype=np.int32)


def normalised(images: jax.Array) -> jax.Array:
    """Bytes as numbers about zero: images [batch, side, side, 3]."""
    return (images.astype(jnp.float32) - 127.5) / 64


def loss_of(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Of a batch that is normalised: images [batch, side, side, 3], labels [batch]."""
    logits = jnp.tanh(images.reshape(len(images), -1) @ params["up"]) @ params["out"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def update(params: Tree, images: jax.Array, labels: jax.Array) -> tuple[Tree, jax.Array]:
    loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
    return descend(params, grads, RATE), loss


def step(params: Tree, images: jax.Array, labels: jax.Array) -> tuple[Tree, jax.Array]:
    return update(params, normalised(images), labels)


def single(examples: Examples) -> list[tuple[Any, Any]]:
    """The examples one by one, as a data set hands them out."""
    return list(zip(*examples, strict=True))


def in_batches(examples: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(examples), size):
        yield examples[start : start + size]


def stacked(examples: list[Any]) -> Examples:
    """Collate on the host: one array for all images, one for all labels."""
    images, labels = zip(*examples, strict=True)
    return np.stack(images), np.stack(labels)


def collated_on_the_device(examples: list[Any]) -> Examples:
    """Collate as one would with host arrays: every example is sent alone, and stacked by programs of its own."""
    images, labels = zip(*examples, strict=True)
    return jnp.stack([jnp.asarray(image) for image in images]), jnp.stack([jnp.asarray(label) for label in labels])


def prefetched(batches: Iterable[Examples]) -> Iterator[Examples]:
    """Send batches ahead of the step that needs them; sending returns before it is done."""
    waiting: deque[Examples] = deque()
    for batch in batches:
        waiting.append(jax.device_put(batch))
        if len(waiting) > AHEAD:
            yield waiting.popleft()
    yield from waiting


@CASES.workload("input-batches-stacked-and-prefetched-vs-collated-by-jnp-asarray", sizes=SIZES)
def loop(size: Extent) -> Computation:
    jitted = jax.jit(step, donate_argnums=0)

    def run(params: Tree, batches: Iterable[Examples]) -> tuple[Tree, jax.Array]:
        losses = []
        for images, labels in batches:
            params, loss = jitted(params, images, labels)
            losses.append(loss)
        return params, losses[-1]

    def ahead(params: Tree, examples: Examples) -> tuple[Tree, jax.Array]:
        return run(params, prefetched(stacked(part) for part in in_batches(single(examples), size.batch)))

    def one_by_one(params: Tree, examples: Examples) -> tuple[Tree, jax.Array]:
        return run(params, (collated_on_the_device(part) for part in in_batches(single(examples), size.batch)))

    count = size.batch * size.steps
    return Computation(
        subject=ahead,
        reference=one_by_one,
        args=(jax.device_put(make_params(size)), make_examples(size, count)),
        carry=0,
        batch=Batch(argument=1, size=count, unit="images"),
        rtol=size.tolerance,
        atol=size.tolerance,
        eager=True,
        claims=[
            claim(f"launches == {STEPS}", "a program for each step, and none to put its batch together"),
            claim("launches <= 0.2 * reference", "stacking on the device takes programs of its own"),
            claim("host_transfers <= 0.3 * reference", "images and labels of a batch are sent as two arrays"),
        ],
    )


def augmented(images: jax.Array, labels: jax.Array, key: jax.Array, classes: int) -> Examples:
    """Flip half of the images, normalise all, and smooth the labels."""
    flips = jax.random.bernoulli(key, shape=(len(images), 1, 1, 1))
    images = jnp.where(flips, images[:, :, ::-1], images)
    return normalised(images), 0.9 * jax.nn.one_hot(labels, classes) + 0.1 / classes


def soft_step(params: Tree, images: jax.Array, wanted: jax.Array) -> tuple[Tree, jax.Array]:
    """One step on probabilities: images [batch, side, side, 3], wanted [batch, classes]."""

    def soft_loss(params: Tree) -> jax.Array:
        logits = jnp.tanh(images.reshape(len(images), -1) @ params["up"]) @ params["out"]
        return optax.softmax_cross_entropy(logits, wanted).mean()

    loss, grads = jax.value_and_grad(soft_loss)(params)
    return descend(params, grads, RATE), loss


@CASES.workload("input-augmented-inside-the-step-vs-eagerly-before-it", sizes=SIZES)
def augmentation(size: Extent) -> Computation:
    def all_of_it(params: Tree, images: jax.Array, labels: jax.Array, key: jax.Array) -> tuple[Tree, jax.Array]:
        return soft_step(params, *augmented(images, labels, key, size.classes))

    whole, only_the_step = jax.jit(all_of_it, donate_argnums=0), jax.jit(soft_step, donate_argnums=0)

    def inside(params: Tree, images: jax.Array, labels: jax.Array, key: jax.Array) -> Any:
        return whole(params, images, labels, key)

    def eagerly(params: Tree, images: jax.Array, labels: jax.Array, key: jax.Array) -> Any:
        return only_the_step(params, *augmented(images, labels, key, size.classes))

    return Computation(
        subject=inside,
        reference=eagerly,
        args=jax.device_put((make_params(size), *make_examples(size, size.batch), jax.random.key(0))),
        carry=0,
        batch=Batch(argument=1, size=size.batch, unit="images"),
        rtol=size.tolerance,
        atol=size.tolerance,
        eager=True,
        claims=[
            claim("launches == 1", "what is done to the images is a part of the step"),
            claim("launches <= 0.2 * reference", "each eager operation is a program, and an array of its own"),
            claim("host_transfers == 0", "nothing is sent to the device between"),
        ],
    )


@CASES.workload("input-of-several-steps-in-one-call-vs-one-call-each", sizes=SIZES)
def epoch(size: Extent) -> Computation:
    def several(params: Tree, images: jax.Array, labels: jax.Array) -> Any:
        return jax.lax.scan(lambda params, batch: step(params, *batch), params, (images, labels))

    together, jitted = jax.jit(several, donate_argnums=0), jax.jit(step, donate_argnums=0)

    def one_call(params: Tree, images: jax.Array, labels: jax.Array) -> Any:
        return together(params, images, labels)

    def calls(params: Tree, images: jax.Array, labels: jax.Array) -> Any:
        losses = []
        for batch in zip(images, labels, strict=True):
            params, loss = jitted(params, *batch)
            losses.append(loss)
        return params, jnp.stack(losses)

    examples = make_examples(size, size.steps * size.batch)
    batches = [part.reshape(size.steps, size.batch, *part.shape[1:]) for part in examples]
    return Computation(
        subject=one_call,
        reference=calls,
        args=jax.device_put((make_params(size), *batches)),
        carry=0,
        batch=Batch(argument=1, size=size.batch, axis=1),
        amount=Amount(count=size.steps * size.batch, unit="images"),
        rtol=size.tolerance,
        atol=size.tolerance,
        eager=True,
        claims=[
            claim("launches == 1", "the loop over the batches is inside the program"),
            claim("launches <= 0.2 * reference", "a call for each step, and programs that cut the batches"),
            claim("host_transfers == 0", "the data is on the device"),
        ],
    )


# Where the channels of an image lie: the layout of a convolution.

LAST = ("NHWC", "HWIO", "NHWC")
FIRST = ("NCHW", "OIHW", "NCHW")

STACKS = sizes(
    batch=(8, 128),
    side=(16, 56),
    channels=(16, 128),
    layers=(3, 6),
    dtype=("float32", "bfloat16"),
    tolerance=(1e-4, 5e-2),
)
"""Extents of a stack of 3 x 3 convolutions over images [batch, side, side, channels]."""


def convolved(x: jax.Array, kernel: jax.Array, numbers: tuple[str, str, str]) -> jax.Array:
    return jax.lax.conv_general_dilated(x, kernel.astype(x.dtype), (1, 1), "SAME", dimension_numbers=numbers)


def channels_last(kernels: list[jax.Array], x: jax.Array) -> jax.Array:
    """Convolve as the images lie: kernels [3, 3, channels, channels], x [batch, side, side, channels]."""
    for kernel in kernels:
        x = jnp.tanh(convolved(x, kernel, LAST))
    return x


def channels_first(kernels: list[jax.Array], x: jax.Array) -> jax.Array:
    """The same with channels before pixels: images turned around once, on each side, and every kernel."""
    x = x.transpose(0, 3, 1, 2)
    for kernel in kernels:
        x = jnp.tanh(convolved(x, kernel.transpose(3, 2, 0, 1), FIRST))
    return x.transpose(0, 2, 3, 1)


def turned_for_each(kernels: list[jax.Array], x: jax.Array) -> jax.Array:
    """Channels last between the layers, and first in each of them: as layers of two frameworks are put together."""
    for kernel in kernels:
        inner = convolved(x.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1), FIRST)
        x = jnp.tanh(inner.transpose(0, 2, 3, 1))
    return x


def train_step(network: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    """One step of gradient descent, the kernels in and out."""

    def step(kernels: Tree, images: jax.Array, targets: jax.Array) -> tuple[Tree, jax.Array]:
        def loss_of(kernels: Tree) -> jax.Array:
            return squared_error(network(kernels, images.astype(dtype)).astype(jnp.float32), targets)

        loss, grads = jax.value_and_grad(loss_of)(kernels)
        return descend(kernels, grads, RATE), loss

    return step


def compared(size: Extent, reference: Callable[..., Any]) -> Computation:
    """Channels last throughout, against a network that turns something around."""
    draw = drawing()
    shape = (size.batch, size.side, size.side, size.channels)
    scale = (9 * size.channels) ** -0.5
    kernels = [scale * draw((3, 3, size.channels, size.channels)) for _ in range(size.layers)]
    args = jax.device_put((kernels, draw(shape), draw(shape)))
    return Computation(
        subject=jax.jit(train_step(channels_last, size.dtype), donate_argnums=0),
        reference=jax.jit(train_step(reference, size.dtype), donate_argnums=0),
        args=args,
        grow=over_samples(args, 1, 2),
        carry=0,
        batch=Batch(argument=1, size=size.batch, unit="images"),
        rtol=size.tolerance,
        claims=[
            claim("matmul_flops == reference", "the order of the axes changes no work"),
            claim("stablehlo_ops <= 0.9 * reference", "nothing is transposed"),
        ],
    )


@CASES.workload("input-images-in-nhwc-vs-in-nchw", sizes=STACKS)
def last(size: Extent) -> Computation:
    return compared(size, channels_first)
