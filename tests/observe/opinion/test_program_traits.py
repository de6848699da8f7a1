"""What a walk over a module says of its cost, its floats and its sums."""

from math import inf

import jax
import jax.numpy as jnp
import pytest

from jaxgate.ext.opinion.traits import read_traits

X = jnp.ones((8, 16))
EPS = 2.0**-23


def traits(function, *arguments, platform="cpu"):
    """Of a function of these arguments."""
    return read_traits(jax.jit(function).lower(*arguments).compiler_ir("stablehlo"), platform)


def test_an_operation_costs_what_it_gives():
    """Two elementwise operations take a step for each number."""
    assert traits(lambda x: jnp.tanh(-x), X).cost == 2 * 8 * 16


def test_a_product_costs_all_that_goes_into_it():
    found = traits(lambda x, y: x @ y, X, jnp.ones((16, 4)))
    assert (found.cost, found.longest_sum) == (2 * 8 * 4 * 16, 16)


def test_a_convolution_sums_over_its_kernel_and_channels():
    """The channels that it makes do not go into a sum."""
    found = traits(lambda x, k: jax.lax.conv(x, k, (1, 1), "VALID"), jnp.ones((1, 3, 8, 8)), jnp.ones((5, 3, 2, 2)))
    assert (found.cost, found.longest_sum) == (2 * 5 * 7 * 7 * 12, 12)


@pytest.mark.parametrize(
    ("function", "longest"),
    [
        (lambda x: x.sum(), 128),
        (lambda x: x.sum(1), 16),
        (lambda x: jnp.cumsum(x, 1), 16),
        (lambda x: x.at[jnp.zeros(8, int)].add(x), 128),
    ],
    ids=["all", "rows", "cumulative", "scatter"],
)
def test_sums_are_as_long_as_what_goes_into_a_number(function, longest):
    """All updates of a scatter may meet in one place."""
    assert traits(function, X).longest_sum == longest


def test_a_loop_costs_its_body_at_each_turn():
    once = traits(lambda x: jnp.tanh(x), X).cost
    turns = [traits(lambda x, n=n: jax.lax.fori_loop(0, n, lambda _, y: jnp.tanh(y), x), X).cost for n in (10, 20)]
    assert turns[0] >= 10 * once
    assert turns[1] == pytest.approx(2 * turns[0], rel=0.1)
    scanned = traits(lambda x: jax.lax.scan(lambda c, y: (jnp.tanh(c), y), x, jnp.ones((30, 2))), X).cost
    assert 30 * once < scanned < 90 * once


def test_a_loop_of_unknown_length_may_take_for_ever():
    assert traits(lambda x: jax.lax.while_loop(lambda y: y.sum() < 9, lambda y: y * 2, x), X).cost == inf


@pytest.mark.parametrize(
    ("function", "eps"),
    [
        (lambda x: x * 2, EPS),
        (lambda x: x.astype(jnp.bfloat16), 2.0**-7),
        (lambda x: jnp.tanh(x.astype(jnp.float16)).astype(jnp.float32), 2.0**-10),
        (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), 2.0**-3),
        (lambda x: jax.lax.reduce_precision(x, 8, 4), 2.0**-4),
        (lambda x: (x + 1j).real, EPS),
    ],
    ids=["float32", "bfloat16", "float16", "float8", "reduced", "complex64"],
)
def test_the_coarsest_float_anywhere_counts(function, eps):
    """Also where neither arguments nor results have it."""
    assert traits(function, X).eps == eps


def test_a_program_without_floats_has_no_error():
    assert traits(lambda x: x + 1, jnp.arange(3)).eps == 0


def test_accelerators_may_make_products_of_bfloat16():
    """Unless the program asks for the highest precision."""
    assert traits(lambda x: x @ x.T, X, platform="gpu").eps == 2.0**-7
    assert traits(lambda x: jnp.matmul(x, x.T, precision="highest"), X, platform="gpu").eps == EPS
    assert traits(lambda x: x * 2, X, platform="gpu").eps == EPS


@pytest.mark.parametrize(
    ("function", "unknown"),
    [
        (lambda x: x * 2, ""),
        (lambda x: jnp.fft.fft(x).real, "stablehlo.fft"),
        (lambda x: jnp.linalg.cholesky(x @ x.T), "stablehlo.custom_call @lapack_spotrf_ffi"),
        (lambda x: jax.random.bits(jax.random.key(0, impl="rbg"), (3,)) + x.size, "stablehlo.rng_bit_generator"),
    ],
    ids=["all known", "fft", "lapack", "rng"],
)
def test_what_the_interpreter_does_not_know_is_named(function, unknown):
    assert traits(function, X).unknown == unknown


@pytest.mark.parametrize(("dtype", "coarse"), [("float32", True), ("float64", False), ("int32", False)])
def test_only_products_of_float32_are_coarse_away_from_cpus(dtype, coarse):
    """Wider ones and those of whole numbers are never made of bfloat16."""
    with jax.enable_x64(True):
        matrix = jnp.ones((4, 4), dtype)
        found = traits(lambda x, y: (x @ x, y + 1), matrix, jnp.ones(3, "float64"), platform="gpu")
    assert (found.eps == 2.0**-7) == coarse
