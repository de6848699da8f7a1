"""What a language model's training step gains from a loop over layers or logits, and its largest batch with remat.

Layers written out one after the other make a program, and a compile, that grows with the depth; one loop over stacked
layers does not. Logits [batch, tokens, vocabulary] are by far the largest array of a small model; made for some tokens
at a time, and once more on the way back, they are never there at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from jaxgate import Alternative, Computation, Family, MaxBatch, claim
from workloads.parts import Extent, Tree, sizes
from workloads.training import lm
from workloads.training.states import (
    ALWAYS,
    Block,
    adamw,
    cross_entropy,
    filled,
    recomputed_flops,
    stepping,
    train_step,
    zeros,
)

CASES = Family("training")

DEEPER = 2
"""How much deeper the model is whose program must be as large."""

LAYERS = sizes(lm.SIZES, layers=(4, 12), batch=(4, 2))  # twice the layers fit 16 GB, too
LOGITS = sizes(
    lm.SIZES, batch=(4, 8), tokens=(64, 512), vocabulary=(2048, 50304), width=(32, 768), layers=1, chunks=(8, 16)
)
"""A model with a large vocabulary, and how many ``chunks`` its tokens are cut into for the loss."""


class StackedLM(nnx.Module):  # type: ignore[misc]  # flax is partly typed, differently on each line
    """The model of ``lm.LM``, the arrays of its blocks stacked along a leading axis ``layers``."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        block = partial(Block, size.width, size.heads, size.dtype, causal=True)
        self.embed = nnx.Embed(size.vocabulary, size.width, dtype=size.dtype, rngs=rngs)
        self.positions = nnx.Param(jnp.zeros((size.tokens, size.width)))
        self.blocks = nnx.split_rngs(splits=size.layers)(nnx.vmap(lambda rngs: block(rngs=rngs)))(rngs)
        self.norm = nnx.LayerNorm(size.width, dtype=size.dtype, rngs=rngs)

    def features(self, tokens: jax.Array, through: Through) -> jax.Array:
        """What the logits are made of: tokens [batch, tokens] to [batch, tokens, width]."""
        embedded = self.embed(tokens)
        x = embedded + self.positions[...].astype(embedded.dtype)
        # Split here, as nnx.scan refuses a module whose arrays are traced further out.
        definition, layers = nnx.split(self.blocks)
        return self.norm(through(lambda x, layer: nnx.merge(definition, layer)(x), x, layers))


Through = Callable[[Callable[[jax.Array, Tree], jax.Array], jax.Array, Tree], jax.Array]
"""Calls a function of one layer for each of the stacked layers, one after the other."""


def in_one_loop(layer: Callable[[jax.Array, Tree], jax.Array], x: jax.Array, layers: Tree) -> jax.Array:
    return jax.lax.scan(lambda x, params: (layer(x, params), None), x, layers)[0]


def written_out(layer: Callable[[jax.Array, Tree], jax.Array], x: jax.Array, layers: Tree) -> jax.Array:
    for index in range(len(jax.tree.leaves(layers)[0])):
        x = layer(x, jax.tree.map(lambda leaf: leaf[index], layers))  # noqa: B023 - called at once
    return x


def at_once(embed: nnx.Embed, x: jax.Array, following: jax.Array) -> jax.Array:
    return cross_entropy(embed.attend(x), following)


def in_chunks(embed: nnx.Embed, x: jax.Array, following: jax.Array, *, chunks: int) -> jax.Array:
    """Logits of some tokens at a time; none are kept for the way back."""

    def cut(whole: jax.Array) -> jax.Array:
        return jnp.moveaxis(whole.reshape(len(whole), chunks, -1, *whole.shape[2:]), 1, 0)

    # A barrier against merging the two computations is not needed inside a loop.
    @partial(jax.checkpoint, prevent_cse=False)
    def add(total: jax.Array, piece: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total + at_once(embed, *piece), None

    total, _ = jax.lax.scan(add, jnp.zeros(()), (cut(x), cut(following)))
    return total / chunks


def loss_of(size: Extent, through: Through, ending: Callable[..., Any]) -> Callable[..., jax.Array]:
    definition, _ = nnx.split(abstract(size))

    def loss(params: nnx.State, tokens: jax.Array, following: jax.Array) -> jax.Array:
        model = nnx.merge(definition, params)
        return ending(model.embed, model.features(tokens, through), following)

    return loss


def abstract(size: Extent) -> StackedLM:
    return nnx.eval_shape(lambda: StackedLM(size, nnx.Rngs(0)))


def donating(size: Extent, through: Through, ending: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(train_step(loss_of(size, through, ending), adamw()), donate_argnums=(0, 1))


def shapes(size: Extent) -> tuple[Tree, Tree]:
    params = nnx.split(abstract(size))[1]
    return params, jax.eval_shape(adamw().init, params)


def make_args(size: Extent) -> tuple[Any, ...]:
    """Parameters, optimiser state, tokens [batch, tokens] and the token after each."""
    params, opt_state = shapes(size)
    return jax.device_put((filled(params), zeros(opt_state), *lm.make_batch(size)))


@CASES.workload("lm-step-with-its-layers-in-one-scan-vs-written-out", sizes=LAYERS)
def layers_in_a_loop(size: Extent) -> Computation:
    """One loop over all layers against a copy for each; a deeper model as the alternative."""
    deeper = size.but(layers=DEEPER * size.layers)
    args = make_args(size)
    alternative = Alternative(function=donating(deeper, in_one_loop, at_once), args=(*shapes(deeper), *args[2:]))
    step = stepping(
        donating(size, in_one_loop, at_once),
        donating(size, written_out, at_once),
        args,
        flops=lm.blocks_flops(size) + 3 * lm.logits_flops(size),
        amount=lm.amount(size),
        tolerance=size.tolerance,
        claims=[
            *ALWAYS,
            claim("stablehlo_ops <= 0.7 * reference", "a layer is compiled once, forward and back"),
            claim("stablehlo_ops == alternatives", "and a deeper model is no larger program"),
            claim("matmul_flops == reference", "the loop runs as many layers"),
        ],
    )
    return replace(step, alternatives={f"{DEEPER} times the layers": alternative})


@CASES.workload("lm-step-with-logits-in-chunks-vs-all-at-once", sizes=LOGITS)
def logits_in_chunks(model: Extent) -> Computation:
    return stepping(
        donating(model, in_one_loop, partial(in_chunks, chunks=model.chunks)),
        donating(model, in_one_loop, at_once),
        make_args(model),
        # Made forward, made again on the way back, and multiplied with both of their operands there.
        flops=lm.blocks_flops(model) + 4 * lm.logits_flops(model),
        amount=lm.amount(model),
        tolerance=model.tolerance,
        claims=[
            *ALWAYS,
            claim("temp_bytes <= 0.7 * reference", "all logits are never there at once"),
            claim(f"matmul_flops <= {4 / 3} * reference", "only the logits are made a second time, not the layers"),
        ],
    )


# The largest batch of a language model's training step on its device, with remat and without.

TIMES = 4
"""How many times the batch remat must make room for. Seen 2026-11-24: for a v5e 68 texts against 8 (libtpu 0.0.42) and 12 (0.0.50)."""

SIZES = sizes(
    batch=(2, 4),  # at which the step is compared
    tokens=(32, 1024),
    vocabulary=(128, 32768),
    width=(32, 1024),
    layers=8,
    heads=(2, 8),
    dtype=("float32", "bfloat16"),
    tolerance=(1e-3, 5e-2),
    budget_bytes=(64 << 20, None),  # memory; `None` for that of the device
    step=(32, 4),  # the largest batch is a multiple of it
    limit=1024,  # more texts than fit with remat, on any device
)


def computed_again(layer: Any, x: jax.Array, layers: Tree) -> jax.Array:
    """One loop over all layers, of which only the inputs are kept for the way back."""
    # Inside a loop nothing can merge the two computations, so the barrier against it would only cost.
    return in_one_loop(jax.checkpoint(layer, prevent_cse=False), x, layers)


@CASES.workload("lm-step-with-remat-largest-batch-in-memory-vs-plain", sizes=SIZES, target_sizes=["full"])
def largest(model: Extent) -> Computation:
    again = model.layers * recomputed_flops(model.batch, model.tokens, model.width)
    step = stepping(
        donating(model, computed_again, at_once),
        donating(model, in_one_loop, at_once),
        make_args(model),
        flops=lm.blocks_flops(model) + again + 3 * lm.logits_flops(model),
        amount=lm.amount(model),
        tolerance=model.tolerance,
        claims=[
            *ALWAYS,
            claim(f"largest_batch >= {TIMES} * reference", "memory that no layer keeps is room for texts"),
            claim(f"matmul_flops <= {4 / 3} * reference", "for at most one forward pass more"),
        ],
    )

    def args_at(batch: int) -> tuple[Any, ...]:
        tokens = jax.ShapeDtypeStruct((batch, model.tokens), jnp.int32)
        return *shapes(model), tokens, tokens

    asked = MaxBatch(budget_bytes=model.budget_bytes, args_at=args_at, step=model.step, limit=model.limit)
    return replace(step, max_batch=asked)
