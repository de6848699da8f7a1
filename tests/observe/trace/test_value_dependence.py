"""Which operations do other work for other values of the same shapes: found, and nothing that only looks like one."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from jaxgate.observe.trace.stablehlo import value_dependent

X = jnp.ones((4, 4))
N = jnp.int32(3)


def named(function, *args):
    return value_dependent(jax.jit(function).lower(*args or (X,)).compiler_ir("stablehlo"))


def turn(carry, x):
    return jnp.tanh(carry @ X), x


INDEPENDENT = {
    "elementwise": lambda x: jnp.where(x > 0, jnp.exp(x), x / 3) @ x,
    "scan": lambda x: lax.scan(turn, x, jnp.arange(5.0)),
    "scan backwards, differentiated": jax.grad(lambda x: lax.scan(turn, x, jnp.arange(5.0), reverse=True)[0].sum()),
    "fori_loop of static length": lambda x: lax.fori_loop(0, 7, lambda i, c: c * i, x),
    "while that counts": lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, x)),
    "while that counts down": lambda x: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * 2), (9, x)),
    "checkpoint": jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()),
    "gather and scatter": lambda x: x.at[x[0].astype(int)].add(x[x[1].astype(int)]),
    "dynamic slice": lambda x: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (N, 0), (1, 4)), (0, N)),
    "erf": lax.erf,
    "argmax and cumsum": lambda x: (jnp.argmax(x), jnp.cumsum(x, 0)),
    "random numbers": lambda x: jax.random.normal(jax.random.wrap_key_data(x[0, :2].astype(jnp.uint32)), (8,)),
}


@pytest.mark.jax_text
@pytest.mark.parametrize("name", INDEPENDENT)
def test_work_that_only_shapes_decide(name):
    """Loops of constant length, indices and selections do the same for any values."""
    assert named(INDEPENDENT[name]) == ()


def loop(going, step, start):
    """A loop over a counter and an array."""
    return lambda x: lax.while_loop(
        lambda c: going(c, x), lambda c: (step(c, x), c[1] * 0.5), (start(x).astype(jnp.int32), x)
    )


def zero(x):
    del x
    return jnp.int32(0)


WHILE, CASE, SORT = ("stablehlo.while",), ("stablehlo.case",), ("stablehlo.sort",)
DEPENDENT = {
    "bound among the arguments": (lambda x: lax.fori_loop(0, x[0, 0].astype(int), lambda i, c: c * i, x), WHILE),
    "start among the arguments": (loop(lambda c, _: c[0] < 9, lambda c, _: c[0] + 1, lambda x: x[0, 0]), WHILE),
    "step among the arguments": (loop(lambda c, _: c[0] < 9, lambda c, x: c[0] + x[0, 0].astype(int), zero), WHILE),
    "step that doubles": (loop(lambda c, _: c[0] < 9, lambda c, _: c[0] * 2 + 1, zero), WHILE),
    "until it has converged": (lambda x: lax.while_loop(lambda c: c.sum() > 1e-3, lambda c: c * 0.5, x), WHILE),
    "counts, and may stop before": (
        loop(lambda c, _: (c[0] < 9) & (c[1].sum() > 0), lambda c, _: c[0] + 1, zero),
        WHILE,
    ),
    "compares two data": (loop(lambda c, _: c[1][0, 0] < c[1][0, 1], lambda c, _: c[0] + 1, zero), WHILE),
    "inside of a scan": (
        lambda x: lax.scan(
            lambda c, _: (lax.while_loop(lambda d: d.sum() > 1, lambda d: d / 2, c), 0), x, None, length=3
        ),
        WHILE,
    ),
    "a bound that moves": (
        lambda x: lax.while_loop(
            lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1] - c[2][0, 0].astype(int), c[2]), (0, 9, x)
        ),
        WHILE,
    ),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), CASE),
    "sort": (jnp.sort, SORT),
    "permutation": (lambda x: jax.random.permutation(jax.random.key(0), x), SORT),
    "several": (lambda x: lax.cond(x[0, 0] > 0, jnp.sort, lambda x: x, x), CASE + SORT),
    # Singular values by a library's call, the largest by a partial sort, draws until one is accepted.
    "svd": (jnp.linalg.svd, ("stablehlo.custom_call @lapack_sgesdd_ffi",)),
    "eigh": (jnp.linalg.eigh, ("stablehlo.custom_call @lapack_ssyevd_ffi",)),
    "top_k": (lambda x: lax.top_k(x, 2), ("chlo.top_k",)),
    "a call of Python": (
        lambda x: jax.pure_callback(lambda x: x, x, x),
        ("stablehlo.custom_call @xla_ffi_python_cpu_callback",),
    ),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_work_that_values_may_decide(name):
    """How often a loop runs, which branch is taken, how soon an array is in order, what somebody else's code does."""
    function, found = DEPENDENT[name]
    assert named(function) == found
