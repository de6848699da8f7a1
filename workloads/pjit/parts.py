"""Parts of a network: attention by heads, with one sum and nothing else; an embedding; layers collected one at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Amount, Batch, Claim, Computation, Family, KnownBreak, claim
from workloads.parts import Extent, Tree, another, block_params, descend, drawing, mlp_layer, sizes
from workloads.pjit.mlp import RATE, TRAINED, descending, devices_of, gathered, mesh_of, on_meshes, shapes, shardings

CASES = Family("pjit")

SIZES = sizes(batch=8, time=(32, 512), width=(64, 2048), heads=(8, 16), hidden=(256, 8192))
"""Sequences, tokens of each, features, heads and hidden units."""

TOKENS = P("data")
BY_HEADS = P("data", None, "model", None)  # [batch, time, heads, dim]
WITHIN_HEADS = P("data", None, None, "model")
INTO, BACK = P(None, "model"), P("model")


def attention(size: Extent, mesh: Mesh | None, spec: P) -> Callable[..., Any]:
    """Attention over all tokens, its heads laid out by ``spec``: x [batch, time, width] to [batch, time, width]."""

    def forward(params: Tree, x: jax.Array) -> jax.Array:
        def heads_of(name: str) -> jax.Array:
            split = (x @ params[name]).reshape(*x.shape[:2], size.heads, size.width // size.heads)
            return split if mesh is None else jax.lax.with_sharding_constraint(split, shardings(mesh, spec))

        query, key, value = map(heads_of, ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * (size.width // size.heads) ** -0.5
        seen = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), value)
        return seen.reshape(x.shape) @ params["out"]

    return forward


def compiled(forward: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    return jax.jit(forward, out_shardings=shardings(mesh, TOKENS))


@on_meshes(CASES, "pjit-attention-by-heads-on-{mesh}-vs-gathered", ({"mesh": "2x4"},), SIZES)
def build_attention(size: Extent, mesh: str) -> Computation:
    """By heads; the alternative splits the features of each head, which scores add up over."""
    devices, draw = mesh_of(mesh), drawing()
    kernels = block_params(draw, size.width, size.hidden)
    numbers = (
        {name: kernels[name] for name in ("query", "key", "value", "out")},
        draw((size.batch, size.time, size.width)),
    )
    into = dict.fromkeys(("query", "key", "value"), INTO)
    layout = shardings(devices, ({**into, "out": BACK}, TOKENS))
    tokens = size.batch * size.time
    return Computation(
        subject=compiled(attention(size, devices, BY_HEADS), devices),
        reference=gathered(attention(size, None, P()), devices),
        args=jax.device_put(numbers, layout),
        carry=1,
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=tokens, unit="tokens"),
        alternatives=another(
            "within-heads", compiled(attention(size, devices, WITHIN_HEADS), devices), shapes(numbers, layout)
        ),
        claims=claims(mesh),
    )


def claims(mesh: str, known_break: KnownBreak | None = None) -> tuple[Claim, ...]:
    """What a part that is split where nothing is added up must give, on any hardware but where the last is known to break."""
    return (
        claim("matmul_flops == reference", "every product once"),
        claim(f"xla_flops <= {1.5 / devices_of(mesh)} * reference", "the devices share the work"),
        claim("collective_bytes <= output_bytes", "the result is added up once; nothing else travels"),
        claim(
            "collective_bytes <= 0.6 * alternatives", "what is in between stays where it is", known_break=known_break
        ),
    )


# A table of embeddings laid out by vocabulary: each device looks up, and scores, the words that it holds.

TABLES = sizes(batch=(8, 16), time=(8, 256), width=(64, 2048), words=(1024, 32768))
"""Sequences, tokens of each, features and words."""

BY_WORDS = P("model")  # [words, width]
SCORES = P("data", None, "model")  # [batch, time, words]


def train_step(mesh: Mesh | None, scores: P) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step of gradient descent on the cross-entropy of the next tokens."""

    def step(params: Tree, tokens: jax.Array, mixed: jax.Array, following: jax.Array) -> tuple[Tree, jax.Array]:
        def loss_of(params: Tree) -> jax.Array:
            x = jnp.tanh(params["table"][tokens] + mixed)
            logits = x @ params["table"].T
            if mesh is not None:
                logits = jax.lax.with_sharding_constraint(logits, shardings(mesh, scores))
            # A comparison picks the score where it lies; an index would have to be sent there.
            picked = jnp.where(following[..., None] == jnp.arange(logits.shape[-1]), logits, 0.0).sum(-1)
            return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return descend(params, grads, RATE), loss

    return step


def compiled_embedding(mesh: Mesh, table: P, scores: P) -> Callable[..., Any]:
    out = shardings(mesh, ({"table": table}, P()))
    return jax.jit(train_step(mesh, scores), donate_argnums=0, out_shardings=out)


@on_meshes(CASES, "pjit-embedding-by-vocabulary-train-step-on-{mesh}-vs-gathered", ({"mesh": "2x4"},), TABLES)
def build_embedding(size: Extent, mesh: str) -> Computation:
    """By vocabulary, against collecting the table; the alternative has all of it everywhere."""
    devices = mesh_of(mesh)
    draw, choose = drawing(), np.random.default_rng(1)
    tokens, following = choose.integers(0, size.words, (2, size.batch, size.time), dtype=np.int32)
    table = np.float32(size.width**-0.5) * draw((size.words, size.width))
    numbers = ({"table": table}, tokens, draw((size.batch, size.time, size.width)), following)
    data = (TOKENS, TOKENS, TOKENS)
    return Computation(
        subject=compiled_embedding(devices, BY_WORDS, SCORES),
        reference=gathered(train_step(None, P()), devices),
        args=jax.device_put(numbers, shardings(devices, ({"table": BY_WORDS}, *data))),
        carry=0,
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        alternatives=another(
            "table-everywhere",
            compiled_embedding(devices, P(), TOKENS),
            shapes(numbers, shardings(devices, ({"table": P()}, *data))),
        ),
        claims=[
            *TRAINED,
            claim(f"xla_flops <= {1.5 / devices_of(mesh)} * reference", "the devices share the scoring"),
            claim("collective_bytes <= 0.6 * reference", "features and sums travel, the table does not"),
            claim("peak_bytes <= 0.7 * alternatives", "each word is stored, and scored, on one device of a row"),
        ],
    )


# Parameters that are spread over the devices and collected one layer at a time, forward and again backward.


STACKS = sizes(batch=(64, 4096), width=(128, 4096), layers=12)
"""Samples, features and layers."""

STACKED = {"kernel": P(None, "data"), "bias": P()}  # [layers, width, width], [layers, width]
SAMPLES = P("data")


def stack_step(mesh: Mesh | None, *, early: bool = False) -> Callable[..., tuple[Tree, jax.Array]]:
    """One step through a loop over layers; ``early`` collects all of them before it."""

    def collected(tree: Tree) -> Tree:
        return tree if mesh is None else jax.lax.with_sharding_constraint(tree, shardings(mesh, P()))

    def network(params: Tree, x: jax.Array) -> jax.Array:
        def body(x: jax.Array, layer: Tree) -> tuple[jax.Array, None]:
            return mlp_layer(layer if early else collected(layer), x), None

        return jax.lax.scan(jax.checkpoint(body), x, collected(params) if early else params)[0]

    return descending(network)


def compiled_stack(mesh: Mesh, *, early: bool) -> Callable[..., Any]:
    out = shardings(mesh, (STACKED, P()))
    return jax.jit(stack_step(mesh, early=early), donate_argnums=0, out_shardings=out)


@on_meshes(CASES, "pjit-mlp-fsdp-layer-by-layer-on-{mesh}-vs-gathered", ({"mesh": "8"},), STACKS)
def build_stack(size: Extent, mesh: str) -> Computation:
    """Layer by layer, against the whole step on every device; the alternative collects all layers at once."""
    devices, draw = mesh_of(mesh), drawing()
    kernel = np.float32(size.width**-0.5) * draw((size.layers, size.width, size.width))
    params = {"kernel": kernel, "bias": np.zeros((size.layers, size.width), np.float32)}
    numbers = (params, draw((size.batch, size.width)), draw((size.batch, size.width)))
    layout = shardings(devices, (STACKED, SAMPLES, SAMPLES))
    return Computation(
        subject=compiled_stack(devices, early=False),
        reference=gathered(stack_step(None), devices),
        args=jax.device_put(numbers, layout),
        carry=0,
        batch=Batch(argument=1, size=size.batch),
        alternatives=another("all-at-once", compiled_stack(devices, early=True), shapes(numbers, layout)),
        claims=[
            *TRAINED,
            claim(f"xla_flops <= {1.5 / devices_of(mesh)} * reference", "the devices share the work"),
            claim("peak_bytes <= 0.7 * alternatives", "one layer is collected at a time, not all of them"),
            claim("collective_bytes <= 2.1 * alternatives", "each layer comes twice, its gradients go once"),
        ],
    )
