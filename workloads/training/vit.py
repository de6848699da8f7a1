"""A vision transformer (ViT-B/16 at 224 x 224 where it is large) in Flax NNX, trained by AdamW with a mask."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from jaxgate import Amount, Batch, Claim, Computation, Family, claim
from workloads.parts import Extent, Tree, drawing, over_samples, sizes
from workloads.training.states import (
    ALWAYS,
    DONATED,
    Block,
    adamw,
    cross_entropy,
    filled,
    forward_flops,
    last_name,
    plain_block,
    plain_linear,
    plain_norm,
    stepping,
    train_step,
    zeros,
)

CASES = Family("training")

SIZES = sizes(
    batch=(8, 32),  # images of one step, ``image`` x ``image`` pixels of three colours
    image=(32, 224),
    patch=(8, 16),  # pixels along each side of what becomes a token
    width=(64, 768),
    layers=(2, 12),
    heads=(2, 12),
    classes=(10, 1000),
    dtype=("float32", "bfloat16"),  # type of activations and products; parameters are float32
    tolerance=(3e-5, 5e-2),
)


def patches_of(size: Extent) -> int:
    return (size.image // size.patch) ** 2


def step_flops(size: Extent) -> int:
    """Three times the forward pass, but for the first product: nobody asks for the gradient of an image."""
    first = 2 * size.batch * patches_of(size) * 3 * size.patch**2 * size.width
    blocks = size.layers * forward_flops(size.batch, patches_of(size) + 1, size.width)
    return 2 * first + 3 * (blocks + 2 * size.batch * size.width * size.classes)


class ViT(nnx.Module):  # type: ignore[misc]
    """Patches and a first token of its own, blocks, and a class read from that token."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        side = (size.patch, size.patch)
        self.dtype = size.dtype
        self.patches = nnx.Conv(3, size.width, side, strides=side, padding="VALID", dtype=size.dtype, rngs=rngs)
        self.first = nnx.Param(jnp.zeros((1, 1, size.width)))
        self.positions = nnx.Param(jnp.zeros((patches_of(size) + 1, size.width)))
        self.blocks = nnx.List(
            [Block(size.width, size.heads, size.dtype, rngs, causal=False) for _ in range(size.layers)]
        )
        self.norm = nnx.LayerNorm(size.width, dtype=size.dtype, rngs=rngs)
        self.head = nnx.Linear(size.width, size.classes, dtype=size.dtype, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        """Classify: images [batch, image, image, 3] to [batch, classes]."""
        x = with_first(self.patches(images), self.first[...], self.positions[...], self.dtype)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def with_first(patches: jax.Array, first: jax.Array, positions: jax.Array, dtype: str) -> jax.Array:
    """Patches [batch, side, side, width] as tokens [batch, 1 + side ** 2, width], after a learned first one."""
    tokens = patches.reshape(len(patches), -1, patches.shape[-1])
    beginning = jnp.broadcast_to(first.astype(dtype), (len(tokens), 1, tokens.shape[-1]))
    return jnp.concatenate([beginning, tokens], axis=1) + positions.astype(dtype)


def nnx_loss(size: Extent) -> Callable[..., jax.Array]:
    definition, _ = nnx.split(abstract(size))

    def loss_of(params: nnx.State, images: jax.Array, labels: jax.Array) -> jax.Array:
        return cross_entropy(nnx.merge(definition, params)(images), labels)

    return loss_of


def plain_loss(size: Extent) -> Callable[..., jax.Array]:
    def loss_of(params: nnx.State, images: jax.Array, labels: jax.Array) -> jax.Array:
        tree = nnx.to_pure_dict(params)
        cut = (len(images), size.image // size.patch, size.patch, size.image // size.patch, size.patch, 3)
        pixels = images.reshape(cut).swapaxes(2, 3).reshape(len(images), patches_of(size), -1)
        kernel = tree["patches"]["kernel"].reshape(-1, size.width)
        patches = plain_linear({"kernel": kernel, "bias": tree["patches"]["bias"]}, pixels, size.dtype)
        x = with_first(patches, tree["first"], tree["positions"], size.dtype)
        for index in range(size.layers):
            x = plain_block(tree["blocks"][index], x, size.heads, size.dtype, causal=False)
        logits = plain_linear(tree["head"], plain_norm(tree["norm"], x, size.dtype)[:, 0], size.dtype)
        scores = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))

    return loss_of


def adamw_by_hand(loss_of: Callable[..., jax.Array]) -> Callable[..., Any]:
    """AdamW as its authors write it (Loshchilov and Hutter, 2019), over the state that Optax keeps."""
    rate, decay, first, second, epsilon = 1e-3, 0.1, 0.9, 0.999, 1e-4

    def step(params: Tree, opt_state: Tree, images: jax.Array, labels: jax.Array) -> tuple[Tree, Tree, jax.Array]:
        loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
        adam = opt_state[0]
        count = adam.count + 1
        mu = jax.tree.map(lambda m, g: first * m + (1 - first) * g, adam.mu, grads)
        nu = jax.tree.map(lambda n, g: second * n + (1 - second) * g * g, adam.nu, grads)

        def moved(path: tuple[Any, ...], p: jax.Array, m: jax.Array, n: jax.Array) -> jax.Array:
            towards = m / (1 - first**count) / (jnp.sqrt(n / (1 - second**count)) + epsilon)
            return p - rate * (towards + decay * p if last_name(path) == "kernel" else towards)

        params = jax.tree_util.tree_map_with_path(moved, params, mu, nu)
        return params, (adam._replace(count=count, mu=mu, nu=nu), *opt_state[1:]), loss

    return step


def abstract(size: Extent) -> ViT:
    return nnx.eval_shape(lambda: ViT(size, nnx.Rngs(0)))


def make_args(size: Extent, optimiser: optax.GradientTransformation) -> tuple[Any, ...]:
    """Parameters, optimiser state, images [batch, image, image, 3] and labels [batch]."""
    params = filled(nnx.split(abstract(size))[1])
    opt_state = zeros(jax.eval_shape(optimiser.init, params))
    images = drawing(1)((size.batch, size.image, size.image, 3))
    labels = np.random.default_rng(2).integers(0, size.classes, size.batch, dtype=np.int32)
    return jax.device_put((params, opt_state, images, labels))


def compared(size: Extent, reference: Callable[..., Any], claims: Sequence[Claim]) -> Computation:
    args = make_args(size, adamw())
    return stepping(
        jax.jit(train_step(nnx_loss(size), adamw()), donate_argnums=(0, 1)),
        reference,
        args,
        flops=step_flops(size),
        amount=Amount(count=size.batch, unit="images"),
        tolerance=size.tolerance,
        claims=claims,
        grow=over_samples(args, 2, 3),
    )


@CASES.workload("vit-adamw-step-in-nnx-donated-vs-copied", sizes=SIZES)
def donated(size: Extent) -> Computation:
    return compared(size, jax.jit(train_step(nnx_loss(size), adamw())), DONATED)


@CASES.workload("vit-adamw-step-with-decay-of-kernels-only-vs-written-by-hand", sizes=SIZES)
def by_hand(size: Extent) -> Computation:
    claims = [
        *ALWAYS,
        claim("matmul_flops == reference", "a module multiplies what its functions multiply"),
        claim("argument_bytes == reference", "and holds no other state"),
        claim("temp_bytes <= 1.5 * reference", "modules are gone once the step is traced"),
        claim("xla_flops <= 1.25 * reference", "and so is the optimiser's chain of transformations"),
    ]
    return compared(size, jax.jit(adamw_by_hand(plain_loss(size)), donate_argnums=(0, 1)), claims)


# The body of a training loop over objects: the whole step under ``nnx.jit``, or its optimiser left outside.

RATE = 0.1
SHALLOW = sizes(SIZES, layers=(1, 12))


def gradients(model: ViT, images: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    return nnx.value_and_grad(lambda model: cross_entropy(model(images), labels))(model)


@partial(nnx.jit, donate_argnums=(0, 1))
def whole_step(model: ViT, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Change model and optimiser in place; the loss."""
    loss, grads = gradients(model, images, labels)
    optimizer.update(model, grads)
    return loss


jitted_gradients = nnx.jit(gradients)


def optimiser_outside(model: ViT, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
    """The same, the optimiser's arithmetic done by one program for each operation and array."""
    loss, grads = jitted_gradients(model, images, labels)
    optimizer.update(model, grads)
    return loss


def make_objects(size: Extent) -> tuple[ViT, nnx.Optimizer]:
    def make() -> tuple[ViT, nnx.Optimizer]:
        model = ViT(size, nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.sgd(RATE), wrt=nnx.Param)

    definition, state = nnx.split(nnx.eval_shape(make))
    return nnx.merge(definition, jax.device_put(filled(state)))


@CASES.workload("vit-step-whole-under-nnx-jit-vs-its-optimiser-outside", sizes=SHALLOW)
def body(size: Extent) -> Computation:
    _, _, images, labels = make_args(size, optax.sgd(RATE))

    def seen(step: Any) -> Any:
        def run(model: ViT, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> Tree:
            loss = step(model, optimizer, images, labels)
            return loss, nnx.to_pure_dict(nnx.state(model, nnx.Param))

        return run

    return Computation(
        subject=seen(whole_step),
        reference=seen(optimiser_outside),
        args=(*make_objects(size), images, labels),
        batch=Batch(argument=2, size=size.batch, unit="images"),
        rtol=size.tolerance,
        eager=True,
        claims=[
            claim("launches == 1", "forward pass, backward pass and optimiser are one program"),
            claim("launches <= 0.1 * reference", "outside of it each array has programs of its own"),
            claim("host_transfers == 0", "nothing is sent to the device between"),
        ],
    )
