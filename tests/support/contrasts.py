"""A small training step in JAX, for contrasts of JAX with itself."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Amount
from workloads.contrast.contrast import Contrast, SpeedClaim, Training

ROWS, WIDTH = 4, 8


def exact(function):
    """In float32, whatever the device would take."""

    def wrapped(*args):
        with jax.default_matmul_precision("highest"):
            return function(*args)

    return wrapped


def logits(params, inputs):
    """Run the layer: inputs [rows, width] to [rows, width]."""
    return jnp.tanh(inputs @ params["kernel"])


def squared(logits, labels):
    """A scalar."""
    return jnp.mean((logits - labels) ** 2)


def training(*, logits=logits, loss=squared, rate=0.1, load=None, kernel=None, hint=exact):
    """The step of a layer, each part of which may be another."""

    def step(params, inputs, labels):
        found, grads = jax.value_and_grad(lambda params: loss(logits(params, inputs), labels))(params)
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), found

    draw = np.random.default_rng(0).standard_normal
    inputs = draw((ROWS, WIDTH)).astype(np.float32)
    first = draw((WIDTH, WIDTH)).astype(np.float32) if kernel is None else kernel
    return Training(
        framework="jax",
        state=({"kernel": first},),
        inputs=inputs,
        labels=draw((ROWS, WIDTH)).astype(np.float32),
        step=jax.jit(hint(step), donate_argnums=0),
        logits=hint(logits),
        loss=loss,
        load=load or (lambda: np.stack(list(inputs))),
        weights=dict,
    )


def contrast(other=training, *, factor=1.0):
    """The step against another."""
    return Contrast(
        sides={"one": training, "other": other},
        amount=Amount(count=ROWS, unit="rows"),
        rtol=1e-4,
        claims=[SpeedClaim(side="other", other="one", factor=factor)],
    )
