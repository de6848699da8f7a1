"""The body of a training loop over objects: the whole step under ``nnx.jit``, or its optimiser left outside."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import optax
from flax import nnx

from jaxgate import Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, sizes
from workloads.training import vit
from workloads.training.states import cross_entropy, filled

CASES = Family("training")

RATE = 0.1
SIZES = sizes(vit.SIZES, layers=(1, 12))


def gradients(model: vit.ViT, images: jax.Array, labels: jax.Array) -> tuple[jax.Array, Tree]:
    """Loss and gradients of a module."""
    return nnx.value_and_grad(lambda model: cross_entropy(model(images), labels))(model)


@partial(nnx.jit, donate_argnums=(0, 1))
def whole_step(model: vit.ViT, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Change model and optimiser in place; the loss."""
    loss, grads = gradients(model, images, labels)
    optimizer.update(model, grads)
    return loss


jitted_gradients = nnx.jit(gradients)


def optimiser_outside(model: vit.ViT, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
    """The same, the optimiser's arithmetic done by one program for each operation and array."""
    loss, grads = jitted_gradients(model, images, labels)
    optimizer.update(model, grads)
    return loss


def make_objects(size: Extent) -> tuple[vit.ViT, nnx.Optimizer]:
    """Model and optimiser, with arrays."""

    def make() -> tuple[vit.ViT, nnx.Optimizer]:
        model = vit.ViT(size, nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.sgd(RATE), wrt=nnx.Param)

    definition, state = nnx.split(nnx.eval_shape(make))
    return nnx.merge(definition, jax.device_put(filled(state)))


@CASES.workload("vit-step-whole-under-nnx-jit-vs-its-optimiser-outside", sizes=SIZES)
def body(size: Extent) -> Computation:
    """One call for the whole step, against the optimiser outside."""
    _, _, images, labels = vit.make_args(size, optax.sgd(RATE))

    def seen(step: Any) -> Any:
        """The step's loss, and the parameters that it leaves behind."""

        def run(model: vit.ViT, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> Tree:
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
