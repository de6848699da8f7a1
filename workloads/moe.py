"""Mixtures of experts: tokens sorted by expert, and experts spread over devices.

Each token is for one expert of many. Sorted by expert, the tokens of each form a block of rows, and one ragged product takes
every block with its own matrix; the obvious way takes every token to every expert and keeps one result. On a mesh each
device has some experts, and tokens travel to theirs and back by two all-to-alls; the obvious way collects the experts.
Mistakes it catches: every expert for every token (`matmul_flops`), experts on every device (`argument_bytes`), experts that
are gathered (`collectives`), room for more tokens than there are. Sources: Shazeer et al. (2017); Gale et al.,
"MegaBlocks" (2022); JAX's documentation of `jax.lax.ragged_dot`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxgate import Batch, Computation, Family, Growth, claim, grows
from workloads.parts import Extent, drawing, grid, sizes, stretched

CASES = Family("moe")

DEVICES = 8

SIZES = sizes(tokens=(256, 16_384), experts=(8, 64), width=(64, 1024), rtol=(1e-3, 2e-2))
"""Tokens of ``width`` numbers, and experts [width, width]; ``rtol`` as the device rounds products."""


def sorted_by_expert(experts: jax.Array, tokens: jax.Array, of: jax.Array) -> jax.Array:
    """Each token by its expert: experts [experts, width, width], tokens [tokens, width], of [tokens]."""
    order = jnp.argsort(of)
    counts = jnp.bincount(of, length=len(experts))
    return jnp.zeros_like(tokens).at[order].set(jax.lax.ragged_dot(tokens[order], experts, counts))


def by_every_expert(experts: jax.Array, tokens: jax.Array, of: jax.Array) -> jax.Array:
    """Each token by every expert, of which one result is kept."""
    found = jnp.einsum("tw,ewv->tev", tokens, experts)
    return jnp.take_along_axis(found, of[:, None, None], axis=1)[:, 0]


@CASES.workload("tokens-sorted-by-expert-vs-by-every-expert", sizes=SIZES)
def ragged(size: Extent) -> Computation:
    draw = drawing()
    of = np.random.default_rng(1).integers(size.experts, size=size.tokens).astype(np.int32)
    experts = np.float32(size.width**-0.5) * draw((size.experts, size.width, size.width))
    args = jax.device_put((experts, draw((size.tokens, size.width)), of))
    return Computation(
        subject=jax.jit(sorted_by_expert),
        reference=jax.jit(by_every_expert),
        args=args,
        grow=Growth(
            lambda tokens: (args[0], *(stretched(tokens, array) for array in args[1:])),
            tokens=[size.tokens // 4, size.tokens // 2, size.tokens],
            claims=[grows("matmul_flops", "tokens") <= 1],
        ),
        batch=Batch(argument=1, size=size.tokens, unit="tokens"),
        analytic_flops=2 * size.tokens * size.width**2,
        rtol=size.rtol,
        atol=size.rtol,
        claims=[
            claim("matmul_flops == analytic_flops", "one expert for each token"),
            claim(f"matmul_flops <= {1.01 / size.experts} * reference", "not all of them"),
        ],
    )


@CASES.workload("experts-on-8-devices-tokens-travel-vs-experts-gathered", sizes=SIZES, devices=DEVICES)
def spread(size: Extent) -> Computation:
    """One expert for each device, as many tokens of each device for each expert: they travel there and back."""
    mesh = grid(expert=DEVICES)
    each = size.tokens // DEVICES // DEVICES

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P("expert"))
    def travelling(expert: jax.Array, tokens: jax.Array) -> jax.Array:
        move = partial(jax.lax.all_to_all, axis_name="expert", split_axis=0, concat_axis=0, tiled=True)
        return move(move(tokens) @ expert[0])

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P("expert"))
    def gathered(expert: jax.Array, tokens: jax.Array) -> jax.Array:
        experts = jax.lax.all_gather(expert, "expert", tiled=True)
        return jnp.einsum("etw,ewv->etv", tokens.reshape(DEVICES, each, -1), experts).reshape(tokens.shape)

    draw = drawing()
    experts = np.float32(size.width**-0.5) * draw((DEVICES, size.width, size.width))
    args = jax.device_put((experts, draw((size.tokens, size.width))), NamedSharding(mesh, P("expert")))
    return Computation(
        subject=jax.jit(travelling),
        reference=jax.jit(gathered),
        args=args,
        batch=Batch(argument=1, size=size.tokens, unit="tokens"),
        rtol=size.rtol,
        atol=size.rtol,
        claims=[
            claim("collectives == 2", "there and back"),
            claim("collective_bytes <= 0.6 * reference", "tokens are less than all experts"),
            claim("temp_bytes <= reference", "no device holds the experts of the others"),
            claim("matmul_flops == reference", "one expert for each token"),
        ],
    )
