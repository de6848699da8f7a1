"""One part of a network, forward: attention by heads, one sum and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxgate import Alternative, Amount, Batch, Claim, Computation, Family, KnownBreak, claim
from workloads.parts import Extent, Tree, block_params, drawing, sizes
from workloads.pjit.meshes import devices_of, gathered, mesh_of, on_meshes, shapes, shardings

CASES = Family("pjit")

SIZES = sizes(batch=8, time=(32, 512), width=(64, 2048), heads=(8, 16), hidden=(256, 8192))
"""Sequences, tokens of each, features, heads and hidden units."""

TOKENS = P("data")
BY_HEADS = P("data", None, "model", None)  # [batch, time, heads, dim]
WITHIN_HEADS = P("data", None, None, "model")
INTO, BACK = P(None, "model"), P("model")


Forward = Callable[[Tree, jax.Array], jax.Array]


def attention(size: Extent, mesh: Mesh | None, spec: P) -> Forward:
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


def compiled(forward: Forward, mesh: Mesh) -> Callable[..., Any]:
    """Under ``jax.jit``, tokens out as they came in."""
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
        alternatives={
            "within-heads": Alternative(
                function=compiled(attention(size, devices, WITHIN_HEADS), devices), args=shapes(numbers, layout)
            )
        },
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
