"""What training steps share: parameters drawn for any framework, a loss, the step itself, and a transformer block.

A model is built with shapes only, so that nothing touches a device, and its arrays are drawn by NumPy: the same on
every release of JAX and Flax.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from jaxgate import Amount, Batch, Claim, Computation, Growth, claim
from workloads.parts import Draw, Tree, drawing


def last_name(path: tuple[Any, ...]) -> str:
    """What an array is called where it stands: ``kernel``, ``bias``, ``scale``."""
    # NNX ends each path with the attribute ``value`` of its variable.
    names = [str(getattr(key, "key", getattr(key, "name", ""))) for key in path]
    return next(name for name in reversed(names) if name not in ("value", ""))


def filled(abstract: Tree, seed: int = 0) -> Tree:
    """Draw the arrays of a model, and zeros for its optimiser: NumPy arrays.

    Kernels [..., inputs, outputs] are scaled by their inputs, so that what flows through keeps its size.
    """
    draw = drawing(seed)

    def fill(path: tuple[Any, ...], leaf: Any) -> Any:
        return _array(draw, last_name(path), leaf) if "opt_state" not in str(path) else np.zeros(leaf.shape, leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, abstract)


def _array(draw: Draw, name: str, leaf: Any) -> Any:
    if name == "kernel":
        # A convolution's kernel is [height, width, inputs, outputs], of a stack of layers [layers, inputs, outputs].
        inputs = np.prod(leaf.shape[:-1]) if leaf.ndim == 4 else leaf.shape[-2]  # noqa: PLR2004 - axes of an image
        return np.float32(inputs**-0.5) * draw(leaf.shape)
    if name in ("embedding", "positions", "first"):
        return np.float32(0.02) * draw(leaf.shape)
    return (np.ones if name in ("scale", "var") else np.zeros)(leaf.shape, leaf.dtype)


def zeros(abstract: Tree) -> Tree:
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), abstract)


def only_kernels(params: Tree) -> Tree:
    """Which arrays decay: matrices and kernels, but neither biases nor scales nor embeddings."""
    return jax.tree_util.tree_map_with_path(lambda path, _: last_name(path) == "kernel", params)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean over all labels [...], each the index of a class; logits [..., classes]."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)
    return jnp.mean(losses)


def train_step(loss_of: Callable[..., Any], optimiser: optax.GradientTransformation) -> Callable[..., Any]:
    """One step of an optimiser: ``params, opt_state, inputs, labels`` to the next two and the loss."""

    def step(params: Tree, opt_state: Tree, inputs: jax.Array, labels: jax.Array) -> tuple[Tree, Tree, jax.Array]:
        loss, grads = jax.value_and_grad(loss_of)(params, inputs, labels)
        updates, opt_state = optimiser.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step


def adamw() -> optax.GradientTransformation:
    # The epsilon keeps the update of an element whose gradient is nearly nothing from turning rounding into a sign.
    return optax.adamw(1e-3, eps=1e-4, weight_decay=0.1, mask=only_kernels)


def stepping(
    subject: Callable[..., Any],
    reference: Callable[..., Any],
    args: tuple[Any, ...],
    *,
    flops: int,
    amount: Amount,
    tolerance: float,
    claims: Sequence[Claim],
    grow: Growth | None = None,
) -> Computation:
    """A training step whose state comes first in its arguments and its results; then inputs and labels [batch, ...]."""
    *state, inputs, _ = args
    return Computation(
        subject=subject,
        reference=reference,
        args=args,
        carry=range(len(state)),
        batch=Batch(argument=len(state), size=inputs.shape[0]),
        amount=amount,
        analytic_flops=flops,
        rtol=tolerance,
        claims=claims,
        grow=grow,
    )


ALWAYS: tuple[Claim, ...] = (
    claim("matmul_flops == analytic_flops", "one forward pass, one backward pass, and no product else"),
    claim("donated_bytes >= 1", "the state is donated at all"),
    claim("aliased_bytes >= donated_bytes", "every array of the state is written where the old one was"),
    claim("host_callbacks == 0", "the loss is returned, not read inside the step"),
    claim("constant_bytes == 0", "parameters and data are arguments: captured ones would never be trained"),
)
"""What holds for each whole training step."""

DONATED: tuple[Claim, ...] = (
    *ALWAYS,
    claim("state_bytes <= 0.7 * reference", "old and new state share their memory"),
    claim("xla_flops <= 1.01 * reference", "donation adds no work"),
)
"""What else holds against a step that copies its state."""


# A transformer block as a Flax NNX module and as plain functions of the same parameters; its FLOPs.

EPSILON = 1e-6
"""Added to the variance in each normalisation; the default of Flax."""


class Block(nnx.Module):  # type: ignore[misc]  # flax is partly typed, differently on each line
    """Attention, then two layers, each after a normalisation and added to what came in."""

    def __init__(self, width: int, heads: int, dtype: str, rngs: nnx.Rngs, *, causal: bool) -> None:
        self.heads, self.causal = heads, causal
        self.before = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.qkv = nnx.Linear(width, 3 * width, dtype=dtype, rngs=rngs)
        self.out = nnx.Linear(width, width, dtype=dtype, rngs=rngs)
        self.between = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, dtype=dtype, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, dtype=dtype, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Run one block: x [batch, tokens, width] to [batch, tokens, width]."""
        x = x + self.out(attend(self.qkv(self.before(x)), self.heads, causal=self.causal))
        return x + self.down(jax.nn.gelu(self.up(self.between(x))))


def attend(qkv: jax.Array, heads: int, *, causal: bool) -> jax.Array:
    """Self-attention: queries, keys and values side by side [batch, tokens, 3 width] to [batch, tokens, width]."""
    batch, tokens, triple = qkv.shape
    query, key, value = jnp.moveaxis(qkv.reshape(batch, tokens, 3, heads, triple // 3 // heads), 2, 0)
    return jax.nn.dot_product_attention(query, key, value, is_causal=causal).reshape(batch, tokens, triple // 3)


def plain_linear(layer: Tree, x: jax.Array, dtype: str) -> jax.Array:
    """Multiply and add in the type of the activations: x [..., inputs] to [..., outputs]."""
    return x.astype(dtype) @ layer["kernel"].astype(dtype) + layer["bias"].astype(dtype)


def plain_norm(layer: Tree, x: jax.Array, dtype: str) -> jax.Array:
    """Normalise the last axis in float32: x [..., width] to [..., width]."""
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = (wide**2).mean(-1, keepdims=True) - mean**2
    return ((wide - mean) * jax.lax.rsqrt(variance + EPSILON) * layer["scale"] + layer["bias"]).astype(dtype)


def plain_block(layer: Tree, x: jax.Array, heads: int, dtype: str, *, causal: bool) -> jax.Array:
    """Do what ``Block`` does, without a framework."""
    inner = plain_linear(layer["qkv"], plain_norm(layer["before"], x, dtype), dtype)
    x = x + plain_linear(layer["out"], attend(inner, heads, causal=causal), dtype)
    inner = jax.nn.gelu(plain_linear(layer["up"], plain_norm(layer["between"], x, dtype), dtype))
    return x + plain_linear(layer["down"], inner, dtype)


def forward_flops(batch: int, tokens: int, width: int) -> int:
    """Of one block: twelve products with a matrix [width, width] for each token, and its scores and sums."""
    # What a causal mask hides is multiplied all the same.
    return 2 * batch * tokens * 12 * width**2 + 2 * 2 * batch * tokens**2 * width


def recomputed_flops(batch: int, tokens: int, width: int) -> int:
    """Of what one block does again under ``jax.checkpoint``: all but its last product, which no gradient needs."""
    return forward_flops(batch, tokens, width) - 2 * batch * tokens * 4 * width**2
