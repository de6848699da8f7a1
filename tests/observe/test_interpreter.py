"""StableHLO's reference interpreter: what it is given and gives, and the names of jaxlib that it needs."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxgate.ext.opinion.interpreter import NotInterpretedError, interpret


def program(function, *arguments):
    """The StableHLO of a function, as text."""
    return str(jax.jit(function).lower(*arguments).compiler_ir("stablehlo"))


@pytest.mark.parametrize(
    "values",
    [
        np.array([[1.5, -2.0]], np.float32),
        np.array(2.5, np.float16),
        np.array([1.0, 3.0, 5.0], ml_dtypes.bfloat16),
        np.array([1.0, 0.5], ml_dtypes.float8_e4m3fn),
        np.array([1, -(2**31)], np.int32),
        np.array([1, 2**32 - 1], np.uint32),
        np.array([], np.float32),
        np.array([True, False, True]),
        np.array([False] * 9 + [True]),
        np.array(True),
    ],
    ids=lambda values: f"{values.dtype.name}{list(values.shape)}",
)
def test_values_arrive_and_return_as_they_are(values):
    """Every type that a program takes and gives goes through unchanged, few booleans among them."""
    (found,) = interpret(program(lambda x: x[...], jnp.asarray(values)), [values])
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.jax_text
def test_it_computes_what_xla_computes():
    """Functions, loops, random numbers, sorting and special functions are interpreted."""

    def function(x, flags):
        drawn = jax.random.normal(jax.random.key(3), x.shape)
        summed = jax.lax.fori_loop(0, 3, lambda _, total: total + jnp.tanh(total @ x), x)
        return jnp.where(flags, summed, drawn), jnp.sort(x, axis=0), jax.scipy.special.erf(x)

    x, flags = jnp.linspace(-1.0, 1.0, 16).reshape(4, 4), jnp.eye(4, dtype=bool)
    found = interpret(program(function, x, flags), [np.asarray(x), np.asarray(flags)])
    for ours, theirs in zip(jax.jit(function)(x, flags), found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_program_for_several_devices_runs_as_one():
    """Shardings and their mesh are left out: the numbers are those of the whole."""
    text = """
      module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
        sdy.mesh @mesh = <["a"=4, "b"=2]>
        func.func public @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8xf32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %rows = sdy.sharding_constraint %x <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
          %sum = stablehlo.reduce(%rows init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
          return %sum : tensor<8xf32>
        }
      }
    """
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    (found,) = interpret(text, [x])
    np.testing.assert_array_equal(found, x.sum(0))


@pytest.mark.parametrize(
    ("text", "inputs", "why"),
    [
        ("no program", [], "error"),
        (program(lambda x: x + 1, 1.0), [], "expected 1 arguments, found 0"),
        (program(lambda x: x + 1, 1.0), [np.ones(2, np.float32)], r"expected an argument of shape \(\), found \(2,\)"),
        (program(lambda x: x + 1j, 1.0), [np.float32(1)], "a result of type complex<f32> cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused(text, inputs, why):
    """A text that is no program, other arguments, and types that cannot be read have one line that says so."""
    with pytest.raises(NotInterpretedError, match=why) as refused:
        interpret(text, [np.asarray(one) for one in inputs])
    assert "\n" not in str(refused.value)
