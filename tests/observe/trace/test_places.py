"""Where something stands: every line is found, also within JAX's helpers and around what has no line of its own."""

import sysconfig

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.hlo.collectives import line_near
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.source_lines import at, places
from jaxgate.observe.trace.jaxpr_cost import count_work
from jaxgate.observe.trace.stablehlo import read_structure

FILE = "tests/observe/trace/test_places.py"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], ""),
        (["", ""], ""),
        (["a.py:1", "", "a.py:1"], "a.py:1"),
        (["a.py:2", "a.py:1", "a.py:2"], "a.py:2, a.py:1"),
        (["a.py:1", "a.py:2", "a.py:3"], "a.py:1, a.py:2, a.py:3"),
        (["a.py:1", "a.py:2", "a.py:3", "a.py:4"], "a.py:1, a.py:2, a.py:3 and 1 more line"),
        (["a.py:1", "a.py:2", "a.py:3", "a.py:4", "b.py:4"], "a.py:1, a.py:2, a.py:3 and 2 more lines"),
    ],
)
def test_places_in_one_text(lines, text):
    """Each line once, in the order given; three are named, the rest is counted, unknown ones are left out."""
    assert places(lines) == text
    assert at(text) == (f" at {text}" if text else "")


def _twice(x, weights):
    x = jnp.tanh(x @ weights)
    return x @ weights


def _line(function, offset):
    return f"{FILE}:{function.__code__.co_firstlineno + offset}"


def test_a_product_within_a_library_s_layer_has_the_line_that_calls_it():
    """What a layer of a library multiplies stands at the innermost line of the project."""
    scope = {}
    library = compile("def dense(x, w):\n    return x @ w\n", f"{sysconfig.get_paths()['purelib']}/layers.py", "exec")
    exec(library, scope)
    dense = scope["dense"]

    def model(x, w):
        return jnp.tanh(dense(x, w))

    traced = jax.jit(model).trace(jnp.ones((8, 8)), jnp.ones((8, 8)))
    assert count_work(traced.jaxpr).lines == {"float32[8,8] x float32[8,8]": _line(model, 1)}


def test_a_product_names_every_line_that_does_it():
    """One pair of shapes multiplied on two lines has both: nobody knows which of them is new."""
    traced = jax.jit(_twice).trace(jnp.ones((8, 8)), jnp.ones((8, 8)))
    wanted = f"{_line(_twice, 1)}, {_line(_twice, 2)}"
    assert count_work(traced.jaxpr).lines == {"float32[8,8] x float32[8,8]": wanted}
    lines = read_structure(traced.lower().compiler_ir("stablehlo")).lines
    assert lines["stablehlo.dot_general 8x8xf32"] == wanted


def _sorts(x):
    doubled = x * 2
    return jnp.argsort(doubled)[-1]


def _sorts_twice(x):
    first = _sorts(x)
    return first + jnp.argsort(x)[0]


def test_what_a_helper_of_jax_is_made_of_stands_where_it_is_called():
    """JAX leaves no line on the sort within ``argsort``: it has the line of the call, or those of all calls."""
    module = jax.jit(_sorts).lower(jnp.ones(16)).compiler_ir("stablehlo")
    lines = read_structure(module).lines
    assert lines["stablehlo.sort 16xf32"] == _line(_sorts, 2)
    assert lines["stablehlo.multiply 16xf32"] == _line(_sorts, 1)
    lines = read_structure(jax.jit(_sorts_twice).lower(jnp.ones(16)).compiler_ir("stablehlo")).lines
    assert set(lines["stablehlo.sort 16xf32"].split(", ")) == {_line(_sorts, 2), _line(_sorts_twice, 2)}


HLO = """HloModule jit_step

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %tanh = f32[8]{0} tanh(%p)METADATA
  %copy = f32[8]{0} copy(%tanh)
  %gather = f32[8]{0} all-gather(%copy), replica_groups={{0,1}}, dimensions={0}
  %far = f32[8]{0} negate(%gather)
  %further = f32[8]{0} negate(%far)OTHER
  ROOT %lone = f32[8]{0} iota()
}
"""


@pytest.mark.parametrize(
    ("tanh", "further", "line"),
    [
        ("/home/user/model.py", "", "/home/user/model.py:12"),
        ("", "/home/user/model.py", "/home/user/model.py:12"),
        ("", "", ""),
    ],
)
def test_an_inserted_collective_has_the_line_of_its_neighbour(tanh, further, line):
    """What a partitioner inserts carries no line: the nearest operation that it reads, or that reads it, has one."""

    def metadata(file):
        return f', metadata={{op_name="jit(step)/tanh" source_file="{file}" source_line=12}}' if file else ""

    hlo = read_hlo(HLO.replace("METADATA", metadata(tanh)).replace("OTHER", metadata(further)))
    assert not hlo.unread
    siblings = hlo.computations["main"]
    assert line_near(siblings["gather"], siblings) == line
    assert line_near(siblings["lone"], siblings) == ""


def test_what_a_loop_of_unknown_length_does_is_marked():
    """One turn is counted, with its lines; a loop of known length is counted in full and not marked."""

    def loop(x, turns):
        return jax.lax.fori_loop(0, turns, lambda _, c: jnp.tanh(c @ c), x)

    product = "float32[8,8] x float32[8,8]"
    known = count_work(jax.jit(lambda x: loop(x, 8)).trace(jnp.ones((8, 8))).jaxpr)
    assert known.matmuls == {product: 8}
    unknown = count_work(jax.jit(loop).trace(jnp.ones((8, 8)), 8).jaxpr)
    assert unknown.matmuls == {f"{product} each turn": 1}
    assert unknown.lines[f"{product} each turn"] == _line(test_what_a_loop_of_unknown_length_does_is_marked, 4)
