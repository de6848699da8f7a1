"""Executables that are the same whatever their names, and those that only look alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from jaxgate.observe.program.executable_fingerprint import canonical, same_executable

X = jax.ShapeDtypeStruct((64, 64), jnp.float32)


def compiled(function, *args, **jit):
    return jax.jit(function, **jit).lower(*args or (X,)).compile()


def step(x):
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ x) * 2, None), x, None, length=4)[0] + 1


def another_name(argument):
    """The same, with other names and lines."""
    first = argument

    def body(carry, _):
        moved = carry @ first
        return jnp.tanh(moved) * 2, None

    last, _ = jax.lax.scan(body, first, None, length=4)
    return last + 1


@pytest.mark.jax_text
def test_names_and_lines_do_not_count():
    """Two spellings of one program compile to one executable, and so do its exported bytes."""
    again = export.deserialize(export.export(jax.jit(step))(X).serialize())
    assert same_executable(compiled(step), compiled(another_name))
    assert same_executable(compiled(step), compiled(again.call))


@pytest.mark.parametrize(
    "other",
    [
        lambda: compiled(lambda x: jax.lax.scan(lambda c, _: (jnp.tanh(c @ x) * 2, None), x, None, length=5)[0] + 1),
        lambda: compiled(lambda x: jax.lax.scan(lambda c, _: (jnp.tanh(c @ x) * 3, None), x, None, length=4)[0] + 1),
        lambda: compiled(lambda x: jax.lax.scan(lambda c, _: (jnp.tanh(x @ c) * 2, None), x, None, length=4)[0] + 1),
        lambda: compiled(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c @ x) * 2, None), x, None, length=4)[0] + 1),
        lambda: compiled(step, donate_argnums=0),
        lambda: compiled(step, jax.ShapeDtypeStruct((32, 32), jnp.float32)),
    ],
    ids=["length", "constant", "order of operands", "operation", "donation", "shape"],
)
def test_what_changes_the_work_is_another_executable(other):
    """One trip more, another number, swapped operands, donated, smaller; numbering follows operands, not only types."""
    assert not same_executable(compiled(step), other())
    assert not same_executable(compiled(lambda x, y: x - y, X, X), compiled(lambda x, y: y - x, X, X))


def test_constants_too_large_to_print_could_differ():
    """Their values are left out of the text, so that nothing is said."""
    table = np.arange(4096, dtype=np.float32).reshape(64, 64)
    one = compiled(lambda x: x @ table)
    assert "{...}" in one.as_text()
    assert not same_executable(one, one)


def test_a_text_without_a_program_is_refused():
    with pytest.raises(ValueError, match="expected a computation"):
        canonical("HloModule jit_f\n")
