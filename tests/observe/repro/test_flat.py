"""Smaller programs out of one: each is a program that compiles and computes what it says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.stablehlo import text_of

from jaxgate.ext.repro import flat
from jaxgate.ext.repro.flat import FlatProgram, numbers, sizes, unmarked


def run(text, *args):
    """What a program gives."""
    from jaxgate.ext.opinion.interpreter import interpret

    return interpret(unmarked(text), [np.asarray(one) for one in args])


@jax.jit
def helper(x):
    """Called twice, so it is a function of the module."""
    return jnp.sin(x) + 1


def chain(x, y):
    """Calls, a constant, two results."""
    z = helper(helper(x)) * 2
    return z + y, jnp.cos(y)


X, Y = np.linspace(0, 1, 4, dtype=np.float32), np.ones(4, np.float32)


def test_calls_are_gone_and_the_program_is_the_same():
    def looped(x, y):
        return jax.lax.fori_loop(0, 3, lambda _, c: helper(c) * y, x)

    for function in (chain, looped):
        text = text_of(function, X, Y)
        assert "call @" not in text
        assert text.count("func.func") == 1
        expected = jax.tree.leaves(function(X, Y))
        for found, wanted in zip(run(text, X, Y), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_value_becomes_an_input_with_a_seat_and_what_led_to_it_goes():
    text = text_of(chain, X, Y)
    product = next(
        name for name in FlatProgram(text).values if (one := flat.returning(text, name)) and "multiply" in one
    )
    small = flat.taking(text, {product: 1000})
    assert FlatProgram(small).seats == [1, 1000]
    assert FlatProgram(small).count == 2
    np.testing.assert_allclose(run(small, Y, X)[0], X + Y)


def test_names_of_values_stay_while_others_are_cut():
    """Else no list of them would last longer than one step."""
    text = text_of(chain, X, Y)
    names = FlatProgram(text).values
    small = flat.taking(text, {names[0]: 7, names[1]: 8})
    assert set(FlatProgram(small).values) < set(names)


def test_one_value_alone_is_returned():
    text = text_of(chain, X, Y)
    first = flat.returning(text, FlatProgram(text).values[0])
    assert FlatProgram(first).outputs == 1
    np.testing.assert_allclose(run(first, X)[0], np.sin(X), rtol=1e-5)
    assert flat.returning(text, "no such value") is None


def test_results_are_kept_by_number():
    small = flat.keeping(text_of(chain, X, Y), [1])
    assert FlatProgram(small).seats == [1]
    np.testing.assert_allclose(run(small, Y)[0], np.cos(Y), rtol=1e-5)


def test_an_operation_is_left_out_where_an_operand_has_its_type():
    text = text_of(lambda x: jnp.exp(jnp.tanh(x)), X)
    tanh, _ = FlatProgram(text).values
    np.testing.assert_allclose(run(flat.bypassed(text, [tanh]), X)[0], np.exp(X), rtol=1e-5)
    assert flat.bypassed(text_of(lambda x: x.sum(), X), FlatProgram(text_of(lambda x: x.sum(), X)).values) is None


def test_what_is_behind_a_barrier_has_the_name_of_what_is_before_it():
    """So that a program with remat and one without share their values."""
    plain = FlatProgram(text_of(lambda x: jnp.sin(jnp.cos(x)), X))
    held = FlatProgram(text_of(lambda x: jnp.sin(jax.lax.optimization_barrier(jnp.cos(x))), X))
    assert plain.values == held.values


def test_a_loop_is_done_once_or_ends_earlier():
    text = text_of(lambda x: jax.lax.fori_loop(0, 6, lambda _, c: c * 2 + 1, x), X)
    once = flat.without_loop(text, 0)
    assert [len(FlatProgram(one).loops) for one in (text, once)] == [1, 0]
    np.testing.assert_allclose(run(once, X)[0], X * 2 + 1)
    assert numbers(text) == ["6"]
    np.testing.assert_allclose(run(flat.renumbered(text, "6", 3), X)[0], X * 8 + 7)


def test_arrays_become_smaller_where_every_operation_allows_it():
    """An operation that has the old size elsewhere, too, does not."""
    text = text_of(lambda x, w: jnp.tanh(x @ w), jnp.ones((8, 32)), jnp.ones((32, 16)))
    small = flat.resized(text, 32, 4)
    assert "tensor<8x4xf32>" in small
    assert run(small, np.ones((8, 4), np.float32), np.ones((4, 16), np.float32))[0].shape == (8, 16)
    assert flat.resized(text_of(lambda x: x[:6], jnp.ones(8)), 8, 4) is None
    assert FlatProgram(small).elements < FlatProgram(text).elements
    assert sizes(text) == [32, 16, 8]


@pytest.mark.parametrize(
    ("function", "args", "count"),
    [(lambda x: x, (X,), 0), (lambda x: jnp.sin(x) * 2, (X,), 3), (lambda x: x.sum(), (X,), 2)],
)
def test_operations_are_counted_without_constants(function, args, count):
    assert FlatProgram(text_of(function, *args)).count == count


def test_a_constant_that_is_spread_is_written_out():
    text = text_of(lambda x: jnp.sin(x) * 2.5, X)
    small = flat.folded(text)
    assert FlatProgram(small).count == FlatProgram(text).count - 1
    np.testing.assert_allclose(run(small, X)[0], np.sin(X) * 2.5, rtol=1e-5)
    assert flat.folded(small) == small


def test_what_a_branch_reads_from_outside_is_part_of_its_name():
    """Two choices with the same code over different arrays are different values."""

    def chosen(index, x, y):
        branches = [lambda one=one: jnp.sin(one) * 2 for one in (x, y)]
        first = jax.lax.switch(index, [branches[0], lambda: jnp.cos(x)])
        second = jax.lax.switch(index, [branches[1], lambda: jnp.cos(y)])
        return first, second

    text = text_of(chosen, np.int32(0), X, Y)
    cases = text.count("stablehlo.case")
    assert cases == 2
    named = FlatProgram(text).results()
    assert len({name for value, name in named if value.owner.name == "stablehlo.case"}) == 2
