"""The model: an MLP-Mixer over one example, as a Flax NNX module and as plain functions of the same parameters.

Each block mixes over time, then over features; the blocks are scanned over, so that rematerialisation holds on every
release (jax 0.10.2 on CPU undoes it for blocks in a row).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from flax import nnx

from workloads.parts import Extent, Tree, drawing

Model = Callable[[Tree, jax.Array], jax.Array]
"""Parameters and one example x [time, width] to [time, width]."""

Checkpoint = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What is done to a block before it is scanned over: ``jax.checkpoint``, or nothing."""


class Block(nnx.Module):  # type: ignore[misc]  # flax is partly typed, differently on each line
    """Mix the positions of an example, then the features of each position."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        self.mix = nnx.Linear(size.time, size.time, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(size.width, size.hidden, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(size.hidden, size.width, use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Run one block: x [time, width] to [time, width]."""
        x = x + self.mix(x.T).T
        return x + self.down(jax.nn.silu(self.up(x)))


class Mixer(nnx.Module):  # type: ignore[misc]
    """Blocks one after the other, their parameters stacked along a leading axis ``layers``."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        stack = nnx.split_rngs(splits=size.layers)(nnx.vmap(lambda rngs: Block(size, rngs)))
        self.blocks = stack(rngs)

    def __call__(self, x: jax.Array, checkpoint: Checkpoint) -> jax.Array:
        """Run all blocks: x [time, width] to [time, width]."""
        # nnx.scan refuses a module whose parameters are traced further out, as under vmap and grad here.
        definition, layers = nnx.split(self.blocks)

        def layer(x: jax.Array, params: nnx.State) -> tuple[jax.Array, None]:
            return nnx.merge(definition, params)(x), None

        return jax.lax.scan(checkpoint(layer), x, layers)[0]


def nnx_model(size: Extent, checkpoint: Checkpoint) -> Model:
    """The module as a pure function of its state: split once, merged where it is called."""
    definition, _ = nnx.split(abstract(size))

    def predict(params: nnx.State, x: jax.Array) -> jax.Array:
        return nnx.merge(definition, params)(x, checkpoint)

    return predict


def plain_model(size: Extent, checkpoint: Checkpoint) -> Model:
    """The same model without a framework."""
    del size  # it is in the parameters' shapes

    def layer(x: jax.Array, params: Tree) -> tuple[jax.Array, None]:
        mix, up, down = (params[name]["kernel"] for name in ("mix", "up", "down"))
        x = x + (x.T @ mix).T
        return x + jax.nn.silu(x @ up) @ down, None

    def predict(params: nnx.State, x: jax.Array) -> jax.Array:
        return jax.lax.scan(checkpoint(layer), x, nnx.to_pure_dict(params)["blocks"])[0]

    return predict


def abstract(size: Extent) -> Mixer:
    """The module with shapes in place of arrays: touches no device and compiles nothing."""
    return nnx.eval_shape(lambda: Mixer(size, nnx.Rngs(0)))


def make_params(size: Extent) -> nnx.State:
    """Draw the module's state, as NumPy arrays: kernels [layers, inputs, outputs], scaled by their inputs."""
    draw = drawing(0)

    def fill(leaf: Any) -> Any:
        return np.float32(0.5 * leaf.shape[1] ** -0.5) * draw(leaf.shape)

    return jax.tree.map(fill, nnx.split(abstract(size))[1])
