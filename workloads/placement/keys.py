"""Random keys: derived within the program from one that stays on the device, or made anew by Python for each step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate.model import Alternative, Amount, Batch, Case, Claim, Computation, at_most, cases, equal
from workloads.parts import Tree, mlp
from workloads.placement.network import SIZES, Extent, draw_inputs

SCALE = 0.1
ROWS = 64
"""Samples whose noise the alternative holds, again and again."""


def noisy(params: Tree, x: jax.Array, key: jax.Array) -> jax.Array:
    """What the network says of samples with noise: [batch, width]."""
    return mlp(params, x + SCALE * jax.random.normal(key, x.shape))


def from_a_number(size: Extent) -> Computation:
    """Noise for step ``number``: the key folded within the program, against a key that Python makes of the number."""
    folded_step = jax.jit(lambda params, x, key, number: noisy(params, x, jax.random.fold_in(key, number)))
    keyed_step = jax.jit(noisy)

    def within(params: Tree, x: jax.Array, key: jax.Array, number: int) -> jax.Array:
        result: jax.Array = folded_step(params, x, key, number)
        return result

    def by_python(params: Tree, x: jax.Array, key: jax.Array, number: int) -> jax.Array:
        del key
        result: jax.Array = keyed_step(params, x, jax.random.fold_in(jax.random.key(0), number))
        return result

    params, x, _ = jax.device_put(draw_inputs(size))
    return Computation(
        subject=within,
        reference=by_python,
        args=(params, x, jax.random.key(0), 0),
        next_args=lambda _, args: (*args[:3], args[3] + 1),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
    )


def from_a_number_claims() -> tuple[Claim, ...]:
    """What folding within the program gives, on any hardware."""
    return (
        equal("compiles", to=1, why="the number of the step is an argument, not a part of the program"),
        equal("launches", to=1, why="the key is made by the step itself"),
        at_most(0.5, "launches", why="Python makes a key, and then another, by programs of their own"),
        at_most(0.75, "host_transfers", why="one number is sent in place of two"),
    )


def carried(size: Extent) -> Computation:
    """A key that each step splits and returns for the next; the alternative has the numbers of another generator in it."""
    drawn = np.random.default_rng(0).standard_normal((ROWS, size.width), np.float32)

    def splitting(params: Tree, x: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        following, own = jax.random.split(key)
        return following, noisy(params, x, own)

    def compiled_in(params: Tree, x: jax.Array) -> jax.Array:
        return mlp(params, x + SCALE * jnp.tile(drawn, (len(x) // ROWS, 1)))

    params, x, _ = jax.device_put(draw_inputs(size))
    return Computation(
        subject=jax.jit(splitting, donate_argnums=2),
        alternatives={"numbers compiled in": Alternative(function=jax.jit(compiled_in), args=(params, x))},
        args=(params, x, jax.random.key(0)),
        next_args=lambda result, args: (*args[:2], result[0]),
        batch=Batch(argument=1, size=size.batch),
        amount=Amount(count=size.batch, unit="samples"),
        analytic_flops=size.forward_flops,
    )


def carried_claims() -> tuple[Claim, ...]:
    """What a carried key gives, on any hardware."""
    return (
        equal("compiles", to=1, why="a key that comes back is of the type that it was"),
        equal("aliased_bytes", to="donated_bytes", why="and takes the place of the old one"),
        at_most(0.05, "constant_bytes", of="alternatives", why="no number is drawn while the program is traced"),
        equal("matmul_flops", to="analytic_flops", why="one forward pass"),
    )


CASES: tuple[Case, ...] = (
    *cases(
        "placement",
        "key-folded-within-the-step-vs-made-by-python",
        from_a_number,
        ({},),
        from_a_number_claims,
        sizes=SIZES,
    ),
    *cases(
        "placement", "key-carried-from-step-to-step-vs-numbers-compiled-in", carried, ({},), carried_claims, sizes=SIZES
    ),
)
