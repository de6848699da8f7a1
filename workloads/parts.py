"""Parts that several families are built of: data, two small networks, a training step, meshes.

Data comes from NumPy with a fixed seed: it is the same on every release of JAX, and costs no compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh

from jaxgate import Alternative, Growth, KnownBreak, Size, grows

Draw = Callable[..., Any]
"""Draws a float32 array of a shape from a standard normal distribution: ``draw((batch, width))``."""

Tree = Any
"""A tree of arrays."""


class Extent(SimpleNamespace):
    """The numbers of one size, by their names: ``size.width``."""

    def but(self, **others: Any) -> Extent:
        """The same with other numbers."""
        return Extent(**{**vars(self), **others})


def sizes(like: Mapping[Size, Extent] | None = None, /, **numbers: Any) -> dict[Size, Extent]:
    """What a workload is built of: each number for two cores of a laptop and for one accelerator, or one for both.

    An ``rtol`` is larger on accelerators, which round the operands of a product to fewer bits. What is not given is as in
    other sizes that this one is ``like``.
    """
    pairs = {name: number if isinstance(number, tuple) else (number, number) for name, number in numbers.items()}
    small, full = ({name: pair[place] for name, pair in pairs.items()} for place in (0, 1))
    if like is not None:
        return {"small": like["small"].but(**small), "full": like["full"].but(**full)}
    return {"small": Extent(**small), "full": Extent(**full)}


def fused_on_gpu(jax: str = ">=0.10") -> KnownBreak:
    """Why a claim about little memory does not hold on a GPU: seen where none is attached."""
    why = "its compiler fuses such small arrays otherwise; seen without a GPU, where nothing is tried out"
    return KnownBreak(jax=jax, platform="gpu", since="2026-11-24", why=why)


def drawing(seed: int = 0) -> Draw:
    """Start a stream of numbers."""
    return partial(np.random.default_rng(seed).standard_normal, dtype=np.float32)


def mlp_params(draw: Draw, width: int, layers: int) -> list[dict[str, Any]]:
    """Draw a multi-layer perceptron: for each layer ``kernel`` [width, width] and ``bias`` [width]; NumPy arrays."""
    scale = np.float32(width**-0.5)
    return [{"kernel": scale * draw((width, width)), "bias": np.zeros(width, np.float32)} for _ in range(layers)]


def mlp_layer(layer: Tree, x: jax.Array) -> jax.Array:
    """One layer: x [..., width] to [..., width]."""
    return jnp.tanh(x @ layer["kernel"] + layer["bias"])


def mlp(params: Tree, x: jax.Array) -> jax.Array:
    """All layers, one after the other: x [..., width] to [..., width]."""
    for layer in params:
        x = mlp_layer(layer, x)
    return x


def block_params(draw: Draw, width: int, hidden: int) -> dict[str, Any]:
    """Draw a transformer block: query, key, value, out [width, width]; up [width, hidden], down [hidden, width]."""
    scale = np.float32(width**-0.5)
    square = {name: scale * draw((width, width)) for name in ("query", "key", "value", "out")}
    return {**square, "up": scale * draw((width, hidden)), "down": np.float32(hidden**-0.5) * draw((hidden, width))}


def normalise(x: jax.Array) -> jax.Array:
    """Scale the last axis to a mean of zero and a variance of one."""
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6)


def attention(params: Tree, x: jax.Array, heads: int) -> jax.Array:
    """Causal self-attention: x [batch, time, width] to [batch, time, width]."""
    batch, time, width = x.shape
    split = (batch, time, heads, width // heads)
    query, key, value = ((x @ params[name]).reshape(split) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * (width // heads) ** -0.5
    seen = jnp.tril(jnp.ones((time, time), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(batch, time, width) @ params["out"]


def block(params: Tree, x: jax.Array, heads: int) -> jax.Array:
    """A transformer block, normalised before each half: x [batch, time, width] to [batch, time, width]."""
    x = x + attention(params, normalise(x), heads)
    return x + jax.nn.gelu(normalise(x) @ params["up"]) @ params["down"]


def squared_error(found: jax.Array, wanted: jax.Array) -> jax.Array:
    """Mean squared error, a scalar."""
    return jnp.mean((found - wanted) ** 2)


def descend(params: Tree, grads: Tree, rate: float) -> Tree:
    """One step of plain gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


def grid(**axes: int) -> Mesh:
    """A mesh over the first devices of this process, axes by name and extent, automatic: ``grid(data=2, model=4)``."""
    extents = tuple(axes.values())
    devices = jax.local_devices()[: int(np.prod(extents))]
    return jax.make_mesh(extents, tuple(axes), axis_types=(AxisType.Auto,) * len(extents), devices=devices)


ONE_PROGRAM = grows("stablehlo_ops", "samples") <= 0
"""However many samples there are, the program is as large."""


def over_samples(
    args: tuple[Any, ...], *positions: int, quarters: Sequence[int] = (1, 2, 4), claims: Sequence[Any] = (ONE_PROGRAM,)
) -> Growth:
    """With some quarters of the samples, which are the first axis of the arguments at these positions."""
    everything = jax.tree.leaves(args[positions[0]])[0].shape[0]

    def at(samples: int) -> tuple[Any, ...]:
        def some(leaf: Any) -> jax.ShapeDtypeStruct:
            shape = (samples * leaf.shape[0] // everything, *leaf.shape[1:])
            placed = leaf.sharding if getattr(leaf, "committed", False) else None
            return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=placed)

        return tuple(jax.tree.map(some, arg) if place in positions else arg for place, arg in enumerate(args))

    return Growth(at, samples=[everything * count // 4 for count in quarters], claims=claims)


def another(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Alternative]:
    """One other way of doing it, for claims such as ``temp_bytes <= alternatives``."""
    return {name: Alternative(function=function, args=args)}


def stretched(count: int, array: Any) -> jax.ShapeDtypeStruct:
    """The shape of an array with so many entries on its first axis."""
    return jax.ShapeDtypeStruct((count, *array.shape[1:]), array.dtype)
