"""A transformer block as a Flax NNX module and as plain functions of the same parameters; its FLOPs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from workloads.parts import Tree

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
