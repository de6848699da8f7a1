"""A decoder-only language model (about GPT-2 small where it is large), in Flax NNX and in Flax Linen."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx
from flax.training.train_state import TrainState

from jaxgate import Amount, Computation, Family, claim
from workloads.parts import Extent, Tree, sizes
from workloads.training.states import (
    ALWAYS,
    EPSILON,
    Block,
    adamw,
    attend,
    cross_entropy,
    filled,
    forward_flops,
    stepping,
    zeros,
)

CASES = Family("training")

SIZES = sizes(
    batch=4,  # sequences of one step
    tokens=(32, 1024),  # length of each
    vocabulary=(128, 50304),  # tokens that there are; their embedding is also what the result is multiplied with
    width=(64, 768),
    layers=(2, 12),
    heads=(2, 12),
    dtype=("float32", "bfloat16"),  # type of activations and products; parameters are float32
    tolerance=(1e-3, 5e-2),
)


def amount(size: Extent) -> Amount:
    return Amount(count=size.batch * size.tokens, unit="tokens")


def blocks_flops(size: Extent) -> int:
    """Of a step, without the logits: the way back costs twice the forward pass."""
    return 3 * size.layers * forward_flops(size.batch, size.tokens, size.width)


def logits_flops(size: Extent) -> int:
    """Of the logits, one forward pass."""
    return 2 * size.batch * size.tokens * size.width * size.vocabulary


class LM(nnx.Module):  # type: ignore[misc]  # flax is partly typed, differently on each line
    """Embeddings, causal blocks, and logits by the same embeddings."""

    def __init__(self, size: Extent, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(size.vocabulary, size.width, dtype=size.dtype, rngs=rngs)
        self.positions = nnx.Param(jnp.zeros((size.tokens, size.width)))
        self.blocks = nnx.List(
            [Block(size.width, size.heads, size.dtype, rngs, causal=True) for _ in range(size.layers)]
        )
        self.norm = nnx.LayerNorm(size.width, dtype=size.dtype, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Predict: tokens [batch, tokens] to logits [batch, tokens, vocabulary]."""
        embedded = self.embed(tokens)
        x = embedded + self.positions[...].astype(embedded.dtype)
        for block in self.blocks:
            x = block(x)
        return self.embed.attend(self.norm(x))


class LinenBlock(linen.Module):  # type: ignore[misc]
    """The block of ``states.Block``, its arrays under the same names."""

    size: Extent

    @linen.compact  # type: ignore[untyped-decorator]
    def __call__(self, x: jax.Array) -> jax.Array:
        """Run one block: x [batch, tokens, width] to [batch, tokens, width]."""
        width, dtype = self.size.width, self.size.dtype
        inner = linen.Dense(3 * width, dtype=dtype, name="qkv")(self.norm("before")(x))
        x = x + linen.Dense(width, dtype=dtype, name="out")(attend(inner, self.size.heads, causal=True))
        inner = jax.nn.gelu(linen.Dense(4 * width, dtype=dtype, name="up")(self.norm("between")(x)))
        return x + linen.Dense(width, dtype=dtype, name="down")(inner)

    def norm(self, name: str) -> linen.LayerNorm:
        """A normalisation of the last axis."""
        return linen.LayerNorm(epsilon=EPSILON, dtype=self.size.dtype, name=name)


class LinenLM(linen.Module):  # type: ignore[misc]
    """The model of ``LM``; what is a list there is numbered names here."""

    size: Extent

    @linen.compact  # type: ignore[untyped-decorator]
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Predict: tokens [batch, tokens] to logits [batch, tokens, vocabulary]."""
        size = self.size
        embed = linen.Embed(size.vocabulary, size.width, dtype=size.dtype, name="embed")
        positions = self.param("positions", linen.initializers.zeros, (size.tokens, size.width))
        embedded = embed(tokens)
        x = embedded + positions.astype(embedded.dtype)
        for index in range(size.layers):
            x = LinenBlock(size, name=f"blocks_{index}")(x)
        return embed.attend(linen.LayerNorm(epsilon=EPSILON, dtype=size.dtype, name="norm")(x))


def nnx_loss(size: Extent) -> Callable[..., jax.Array]:
    definition, _ = nnx.split(abstract(size))

    def loss_of(params: nnx.State, tokens: jax.Array, following: jax.Array) -> jax.Array:
        return cross_entropy(nnx.merge(definition, params)(tokens), following)

    return loss_of


def linen_step(state: TrainState, tokens: jax.Array, following: jax.Array) -> tuple[TrainState, jax.Array]:
    """One step as Flax's guides have it: the state knows the model and the optimiser."""

    def loss_of(params: Tree) -> jax.Array:
        return cross_entropy(state.apply_fn({"params": params}, tokens), following)

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


def nnx_step_of_train_state(size: Extent) -> Callable[..., tuple[TrainState, jax.Array]]:
    """The same step over the same state, with the model in NNX."""
    loss_of, (_, like) = nnx_loss(size), nnx.split(abstract(size))

    def renamed(params: Tree) -> nnx.State:
        blocks = {index: params[f"blocks_{index}"] for index in range(size.layers)}
        others = {name: part for name, part in params.items() if not name.startswith("blocks_")}
        found = jax.tree.map(lambda leaf: leaf, like)
        nnx.replace_by_pure_dict(found, {**others, "blocks": blocks})
        return found

    def step(state: TrainState, tokens: jax.Array, following: jax.Array) -> tuple[TrainState, jax.Array]:
        loss, grads = jax.value_and_grad(lambda params: loss_of(renamed(params), tokens, following))(state.params)
        return state.apply_gradients(grads=grads), loss

    return step


def abstract(size: Extent) -> LM:
    return nnx.eval_shape(lambda: LM(size, nnx.Rngs(0)))


def make_batch(size: Extent) -> tuple[Any, Any]:
    """Tokens [batch, tokens], and the token that follows each."""
    text = np.random.default_rng(1).integers(0, size.vocabulary, (size.batch, size.tokens + 1), dtype=np.int32)
    return text[:, :-1], text[:, 1:]


@CASES.workload("lm-step-in-linen-with-train-state-vs-nnx", sizes=SIZES)
def with_linen(size: Extent) -> Computation:
    model = LinenLM(size)
    shapes = jax.eval_shape(model.init, jax.random.key(0), jax.ShapeDtypeStruct((size.batch, size.tokens), jnp.int32))
    params = filled(shapes["params"])
    opt_state = zeros(jax.eval_shape(adamw().init, params))
    state = TrainState(
        step=np.zeros((), np.int32), apply_fn=model.apply, params=params, tx=adamw(), opt_state=opt_state
    )
    return stepping(
        jax.jit(linen_step, donate_argnums=0),
        jax.jit(nnx_step_of_train_state(size), donate_argnums=0),
        jax.device_put((state, *make_batch(size))),
        flops=blocks_flops(size) + 3 * logits_flops(size),
        amount=amount(size),
        tolerance=size.tolerance,
        claims=[
            *ALWAYS,
            claim("matmul_flops == reference", "both are the same model"),
            claim("argument_bytes == reference", "with the same state"),
            claim("temp_bytes <= 1.5 * reference", "of either nothing is left once the step is traced"),
            claim("xla_flops <= 1.25 * reference", "nor of what surrounds its layers"),
        ],
    )
