"""Small programs as JAX code: it computes the same, and what cannot be written is refused by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.stablehlo import text_of

from jaxgate.ext.repro.jax_code import NotWrittenError, jax_code, lowered_again
from jaxgate.ext.repro.model import ArrayOf

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.mark.jax_text
@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.tanh(x) + 2.5 * jnp.abs(x),
        lambda x: (x @ x.T).sum(axis=1),
        lambda x: x.max() - x.min(),
        lambda x: jnp.where(x > 0, x, -x).astype(jnp.bfloat16),
        lambda x: jax.lax.optimization_barrier(x.reshape(4, 3).transpose(1, 0)),
        lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)) if x.ndim == 1 else x[:, None, :] * jnp.ones((3, 2, 4)),
        lambda x: jnp.arange(4) * x.astype(jnp.int32) + (x.astype(jnp.int32) == 1),
        lambda x: jax.lax.dot_general(x[None], x[None], (((2,), (2,)), ((0,), (0,)))),
    ],
    ids=["elementwise", "product", "reductions", "select", "shapes", "broadcast", "whole numbers", "batched product"],
)
def test_the_code_computes_the_same(function):
    code = jax_code(text_of(function, X))
    scope = {"jax": jax, "jnp": jnp}
    exec(code, scope)
    found, expected = scope["f"](jnp.asarray(X)), function(jnp.asarray(X))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=1e-2)


def test_the_code_is_lowered_with_all_its_inputs():
    """The places of its arguments stay, whatever it uses."""
    again = lowered_again("def f(x0, x1):\n    return jnp.sin(x1)\n", [ArrayOf(dtype="float32", shape=(2,))] * 2)
    assert "sine %arg1" in again


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, c: c * 2, x), "stablehlo.while"),
        (lambda x: jnp.sort(x), "stablehlo.sort"),
        (lambda x: x + jnp.arange(12.0).reshape(3, 4) * 0.5 + np.asarray(X), "several numbers"),
        (lambda x: jax.lax.reduce(x, jnp.float32(3), jax.lax.add, (0,)), "begins with another number"),
    ],
    ids=["a loop", "a sort", "a table", "a sum from 3"],
)
def test_what_cannot_be_written_is_refused(function, named):
    """By name: a wrong line would be worse than none."""
    with pytest.raises(NotWrittenError, match=named):
        jax_code(text_of(function, X))
