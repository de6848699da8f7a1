"""Random keys: derived within the program from one that stays on the device, or made anew by Python for each step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgate import Alternative, Batch, Computation, Family, claim
from workloads.parts import Extent, Tree, mlp
from workloads.placement.network import SIZES, draw_inputs

CASES = Family("placement")

SCALE = 0.1
ROWS = 64
"""Samples whose noise the alternative holds, again and again."""


def noisy(params: Tree, x: jax.Array, key: jax.Array) -> jax.Array:
    """What the network says of samples with noise: [batch, width]."""
    return mlp(params, x + SCALE * jax.random.normal(key, x.shape))


@CASES.workload("key-folded-within-the-step-vs-made-by-python", sizes=SIZES)
def from_a_number(size: Extent) -> Computation:
    """Noise for step ``number``: the key folded within the program, against a key that Python makes of the number."""
    folded_step = jax.jit(lambda params, x, key, number: noisy(params, x, jax.random.fold_in(key, number)))
    keyed_step = jax.jit(noisy)

    def within(params: Tree, x: jax.Array, key: jax.Array, number: int) -> jax.Array:
        return folded_step(params, x, key, number)

    def by_python(params: Tree, x: jax.Array, key: jax.Array, number: int) -> jax.Array:
        del key
        return keyed_step(params, x, jax.random.fold_in(jax.random.key(0), number))

    params, x, _ = jax.device_put(draw_inputs(size))
    return Computation(
        subject=within,
        reference=by_python,
        args=(params, x, jax.random.key(0), 0),
        next_args=lambda _, args: (*args[:3], args[3] + 1),
        batch=Batch(argument=1, size=size.batch),
        rtol=size.rtol,
        atol=size.rtol,
        eager=True,
        claims=[
            claim("compiles == 1", "the number of the step is an argument, not a part of the program"),
            claim("launches == 1", "the key is made by the step itself"),
            claim("launches <= 0.5 * reference", "Python makes a key, and then another, by programs of their own"),
            claim("host_transfers <= 0.75 * reference", "one number is sent in place of two"),
        ],
    )


@CASES.workload("key-carried-from-step-to-step-vs-numbers-compiled-in", sizes=SIZES)
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
        carry=2,
        batch=Batch(argument=1, size=size.batch),
        claims=[
            claim("compiles == 1", "a key that comes back is of the type that it was"),
            claim("aliased_bytes >= donated_bytes", "and takes the place of the old one"),
            claim("constant_bytes <= 0.05 * alternatives", "no number is drawn while the program is traced"),
            claim("matmul_flops == reference", "one forward pass"),
        ],
    )
