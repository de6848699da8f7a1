"""What all series share: a network, one step of gradient descent with momentum, cases by the number of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Family
from workloads.parts import Draw, Extent, Tree, drawing

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
    """Pairs of layers written out: their kernels in a list."""

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
    """The state after one step of gradient descent with momentum."""
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, state["momentum"], grads)
    params = jax.tree.map(lambda p, m: p - RATE * m, state["params"], momentum)
    return {"params": params, "momentum": momentum}


PLAIN = one_by_one(pair_of_layers)


def train_step(network: Layers = PLAIN) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step: state, inputs and targets to the new state and the loss."""

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
