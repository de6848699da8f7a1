"""Which variable a captured constant likely comes from; where none fits, nothing is guessed."""

from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgate.observe.source_lines import short_path
from jaxgate.observe.trace.captured_constants import describe_constants
from jaxgate.observe.trace.stablehlo import read_structure

X = jnp.ones(3)
TABLE = np.arange(300.0, dtype=np.float32)
SETTINGS = {"tables": [np.arange(301.0, dtype=np.float32)]}


class Tables:
    """An object that is no pytree."""

    def __init__(self):
        self.sines = np.sin(np.arange(302.0, dtype=np.float32))

    def __call__(self, x):
        return x * jnp.asarray(self.sines)[:3]


HELD = Tables()


def constants(function, *args):
    """What is said of the constants in a function's program."""
    module = jax.jit(function).lower(*(args or (X,))).compiler_ir("stablehlo")
    return describe_constants(read_structure(module).constants, function)


def closing():
    """A function over a variable of its maker."""
    weights = jnp.arange(310.0)

    def closed(x):
        return x * jnp.dot(weights, weights)

    return closed


def reads(x):
    return x * jnp.asarray(TABLE)[:3]


def floats(count):
    return np.arange(count, dtype=np.float32)


DEFAULT, KEYWORD = floats(303), floats(304)
ORIGINS = {
    "closure": (closing(), "`weights` captured in closed", 310),
    "global": (reads, "`TABLE` captured in reads", 300),
    "global-within": (
        lambda x: jax.grad(lambda v: (v * jnp.asarray(TABLE)[:3]).sum())(x),
        "`TABLE` captured in <lambda>",
        300,
    ),
    "global-of-another": (lambda x: reads(x) + 1, "`TABLE` captured in reads", 300),
    "item": (lambda x: x * jnp.asarray(SETTINGS["tables"][0])[:3], "`SETTINGS['tables'][0]` captured in <lambda>", 301),
    "attribute": (lambda x: x * jnp.asarray(HELD.sines)[:3], "`HELD.sines` captured in <lambda>", 302),
    "called-object": (lambda x: HELD(x), "`HELD.sines` captured in <lambda>", 302),
    "default": (lambda x, w=DEFAULT: x * jnp.asarray(w)[:3], "`w` captured in <lambda>", 303),
    "keyword-default": (lambda x, *, w=KEYWORD: x * jnp.asarray(w)[:3], "`w` captured in <lambda>", 304),
}


@pytest.mark.parametrize(("function", "origin", "length"), ORIGINS.values(), ids=ORIGINS)
def test_the_likely_origin_is_named(function, origin, length):
    """By shape and size: the variable, its function, the type, the size, and who uses it where."""
    (line,) = constants(function)
    assert line.startswith(f"likely {origin}: {length}xf32 ({4 * length:,} bytes) used by stablehlo.")
    assert f" at {short_path(__file__)}:" in line


def test_an_attribute_of_a_module_is_named(tmp_path):
    """A table of another module of the project, by the name it is used under."""
    tables = ModuleType("tables")
    tables.__file__, tables.SINES = str(tmp_path / "tables.py"), np.sin(floats(305))
    file = tmp_path / "reader.py"
    file.write_text("def reads(x):\n    return x * jnp.asarray(tables.SINES)[:3]\n")
    scope = {"tables": tables, "jnp": jnp}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    (line,) = constants(scope["reads"])
    assert line.startswith("likely `tables.SINES` captured in reads: 305xf32 (1,220 bytes)")


def test_what_nothing_fits_has_no_origin():
    """An array that is made while tracing belongs to no variable: its type and place, and no guess."""
    assert constants(lambda x, table: x * table[:3], X, TABLE) == ()  # is given, not captured
    (line,) = constants(lambda x: x * jnp.asarray(np.arange(306.0, dtype=np.float32))[:3])
    assert line.startswith("306xf32 (1,224 bytes) used by stablehlo.")
    assert "likely" not in line


def test_equal_shapes_are_told_apart_by_their_values():
    """Each of two tables is named as itself, also beside a third; equal values, or unreadable ones, are a guess."""
    one, other, aside = jnp.arange(307.0), jnp.arange(307.0)[::-1], jnp.ones(307)
    lines = constants(lambda x: x * jnp.dot(one, one) + jnp.dot(other, other) + aside.shape[0])
    assert sorted(line.partition(":")[0] for line in lines) == [
        "likely `one` captured in <lambda>",
        "likely `other` captured in <lambda>",
    ]
    same = jnp.arange(307.0)
    (line, *_) = constants(lambda x: x * jnp.dot(one, one + 1) + same.shape[0])
    assert line.startswith("likely `one` captured in <lambda> or `same` captured in <lambda>: ")
    halves = jnp.arange(1024, dtype=jnp.bfloat16)  # has no buffer in the bindings: the shape is what is left
    (line,) = constants(lambda x: x * halves[:3].astype(jnp.float32))
    assert line.startswith("likely `halves` captured in <lambda>: 1024xbf16")


def test_what_cannot_be_read_any_more_is_passed_over():
    """An array that was donated meanwhile, or that holds random keys, explains nothing and breaks nothing."""
    table, gone, keys = jnp.arange(512.0), jnp.arange(512.0), jax.random.split(jax.random.key(0), 256)
    gone.delete()
    lines = constants(lambda x: x * table[:3] + gone.shape[0] + keys.shape[0])
    assert [line.partition(":")[0] for line in lines] == ["likely `table` captured in <lambda>"]


def test_the_largest_comes_first():
    """Whoever looks for memory reads the first line."""
    small, large = jnp.arange(308.0), jnp.arange(3080.0)
    lines = constants(lambda x: x * jnp.dot(small, small) + jnp.dot(large, large))
    assert ["`large`" in line for line in lines] == [True, False]
    assert lines[0].startswith("likely `large` captured in <lambda>: 3080xf32 (12,320 bytes)")
