"""Monte-Carlo: one function of one random key, mapped over as many keys as there are paths.

Keys are split outside the function that uses them. What Python draws while tracing is a constant of the program, the
same for every path and every call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Alternative, Amount, Batch, Computation, Family, claim
from workloads.parts import Extent, sizes

CASES = Family("vmap")

SPOT, STRIKE, RATE, VOLATILITY = 100.0, 50.0, 0.02, 0.2  # far in the money: no path pays nothing, each one shows
IMPLEMENTATION = "threefry2x32"  # gives a key the same numbers in a batch as alone


LOOPED = sizes(steps=504, paths=(8, 64))
"""How many paths, and how many steps each one has."""
MAPPED = sizes(steps=504, paths=(128, 65536))
"""How many paths, and how many steps each one has."""


def payoff(market: dict[str, jax.Array], key: jax.Array, steps: int) -> jax.Array:
    """Discounted payoff of an Asian call on one path of geometric Brownian motion, a scalar."""
    dt = 1 / steps
    normals = jax.random.normal(key, (steps,))
    drift = (market["rate"] - market["volatility"] ** 2 / 2) * dt
    growth = jnp.cumsum(drift + market["volatility"] * dt**0.5 * normals)
    mean = jnp.mean(market["spot"] * jnp.exp(growth))
    return jnp.exp(-market["rate"]) * jnp.maximum(mean - market["strike"], 0.0)


def make_market() -> Any:
    """Spot and strike in money, rate and volatility a year."""
    values = {"spot": SPOT, "strike": STRIKE, "rate": RATE, "volatility": VOLATILITY}
    return jax.device_put({name: np.float32(value) for name, value in values.items()})


def make_keys(paths: int) -> jax.Array:
    """One typed key for each path."""
    return jax.random.split(jax.random.key(0, impl=IMPLEMENTATION), paths)


def batched(steps: int) -> Callable[..., jax.Array]:
    """All paths in one: keys [paths]."""
    return lambda market, keys: jax.vmap(lambda key: payoff(market, key, steps))(keys)


def mapped(steps: int) -> Callable[..., jax.Array]:
    """One path after the other, in a compiled loop."""
    return lambda market, keys: jax.lax.map(lambda key: payoff(market, key, steps), keys)


def looped(steps: int) -> Callable[..., jax.Array]:
    """One copy of the function for every path."""
    return lambda market, keys: jnp.stack([payoff(market, keys[path], steps) for path in range(keys.shape[0])])


def splitting(of_keys: Callable[..., jax.Array], paths: int) -> Callable[..., jax.Array]:
    """One key comes in, and is split before it reaches any path."""
    return lambda market, key: of_keys(market, jax.random.split(key, paths))


@CASES.workload("monte-carlo-with-a-key-for-each-path-vmap-vs-lax.map", sizes=MAPPED)
def keys_of_paths(size: Extent) -> Computation:
    """Payoffs of all paths: an array of keys comes in, one for each path."""
    market, keys = make_market(), make_keys(size.paths)
    subject = batched(size.steps)
    return Computation(
        subject=jax.jit(subject),
        reference=jax.jit(mapped(size.steps)),
        args=(market, keys),
        batch=Batch(argument=1, size=size.paths, unit="paths"),
        rtol=1e-4,
        atol=1e-3,  # of about fifty
        alternatives={"twice the paths": Alternative(function=subject, args=(market, make_keys(2 * size.paths)))},
        claims=[NO_DRAWS, SAME_SIZE],
    )


@CASES.workload("monte-carlo-with-one-key-split-outside-vmap-vs-loop", sizes=LOOPED)
def key_of_a_call(size: Extent) -> Computation:
    """Payoffs of all paths: one key comes in, is split once, and the next call gets another one."""
    args = (make_market(), jax.random.key(0, impl=IMPLEMENTATION))
    return Computation(
        subject=jax.jit(splitting(batched(size.steps), size.paths)),
        reference=jax.jit(splitting(looped(size.steps), size.paths)),
        args=args,
        next_args=lambda _, args: (args[0], jax.random.fold_in(args[1], 1)),
        amount=Amount(count=size.paths, unit="paths"),
        rtol=1e-4,
        atol=1e-3,  # of about fifty
        alternatives={
            "twice the paths": Alternative(function=splitting(batched(size.steps), 2 * size.paths), args=args)
        },
        claims=[
            NO_DRAWS,
            SAME_SIZE,
            claim("stablehlo_ops <= 0.75 * reference", "vmap holds the function once, the loop once for each path"),
        ],
    )


# The generator has tables of its own, of some bytes; the draws of one path are about two kilobytes.
NO_DRAWS = claim("constant_bytes <= 512", "what is random comes from a key, nothing is drawn while tracing")
SAME_SIZE = claim("stablehlo_ops == alternatives", "the program does not grow with the number of paths")
