"""A table of embeddings laid out by vocabulary: each device looks up, and scores, the words that it holds.

The table is used at both ends, as in language models: tokens are looked up in it, and the next ones scored by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, descend, drawing, sizes
from workloads.pjit.meshes import TRAINED, devices_of, gathered, mesh_of, on_meshes, shapes, shardings

CASES = Family("pjit")

RATE = 0.05


SIZES = sizes(batch=(8, 16), time=(8, 256), width=(64, 2048), words=(1024, 32768))
"""Sequences, tokens of each, features and words."""

BY_WORDS = P("model")  # [words, width]
TOKENS = P("data")
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


def compiled(mesh: Mesh, table: P, scores: P) -> Callable[..., Any]:
    """The step for a layout; the table comes back as it went in."""
    out = shardings(mesh, ({"table": table}, P()))
    return jax.jit(train_step(mesh, scores), donate_argnums=0, out_shardings=out)


@on_meshes(CASES, "pjit-embedding-by-vocabulary-train-step-on-{mesh}-vs-gathered", ({"mesh": "2x4"},), SIZES)
def build(size: Extent, mesh: str) -> Computation:
    """By vocabulary, against collecting the table; the alternative has all of it everywhere."""
    devices = mesh_of(mesh)
    draw, choose = drawing(), np.random.default_rng(1)
    tokens, following = choose.integers(0, size.words, (2, size.batch, size.time), dtype=np.int32)
    table = np.float32(size.width**-0.5) * draw((size.words, size.width))
    numbers = ({"table": table}, tokens, draw((size.batch, size.time, size.width)), following)
    data = (TOKENS, TOKENS, TOKENS)
    return Computation(
        subject=compiled(devices, BY_WORDS, SCORES),
        reference=gathered(train_step(None, P()), devices),
        args=jax.device_put(numbers, shardings(devices, ({"table": BY_WORDS}, *data))),
        carry=0,
        batch=Batch(argument=2, size=size.batch),
        amount=Amount(count=size.batch * size.time, unit="tokens"),
        alternatives={
            "table-everywhere": Alternative(
                function=compiled(devices, P(), TOKENS),
                args=shapes(numbers, shardings(devices, ({"table": P()}, *data))),
            )
        },
        claims=[
            *TRAINED,
            claim(f"xla_flops <= {1.5 / devices_of(mesh)} * reference", "the devices share the scoring"),
            claim("collective_bytes <= 0.6 * reference", "features and sums travel, the table does not"),
            claim("peak_bytes <= 0.7 * alternatives", "each word is stored, and scored, on one device of a row"),
        ],
    )
