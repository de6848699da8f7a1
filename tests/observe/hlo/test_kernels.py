"""What a device starts in a call of an optimised program, and which of it only copies: real texts, and texts by hand."""

import jax
import jax.numpy as jnp
import pytest
from support.hlo import ADD, STORED, branches, loop, program

from jaxgate.observe.hlo.kernels import read_kernels
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.trace.stages import compiled_facts


def kernels(*lines, before=""):
    return read_kernels(read_hlo(program(*lines, before=before)))


@pytest.mark.parametrize(
    ("name", "started", "copied"),
    [
        ("cpu-0.10/train", 12, 0),  # the shortest, counted by hand
        ("cpu-0.12/layers", 181, 43_064),
        ("cuda-0.10/layers", 158, 24_632),
        ("cuda-0.12/layers", 136, 32),
        # What a TPU fetches ahead into its VMEM is started, and no copy.
        ("tpu-0.12/train", 13, 0),
        ("tpu-0.12/layers", 201, 24_584),
    ],
)
def test_texts_of_three_compilers(name, started, copied):
    """As read; their loops turn six times."""
    found = read_kernels(read_hlo(STORED[name]))
    assert found.facts == {"kernels": started, "copied_bytes": copied, "scattered_bytes": 0}


FUSED = """%fused (p: f32[8,4]) -> f32[4,8] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %t = f32[4,8]{1,0} transpose(%p), dimensions={1,0}
}

%work (q: f32[8,4]) -> f32[4,8] {
  %q = f32[8,4]{1,0} parameter(0)
  %n = f32[8,4]{1,0} negate(%q)
  ROOT %u = f32[4,8]{1,0} transpose(%n), dimensions={1,0}
}

"""


@pytest.mark.parametrize(
    ("line", "label", "copied"),
    [
        ("f32[8,4]{0,1} copy(%a)", "copy float32[8,4]", 128),
        ("f32[4,8]{1,0} transpose(%a), dimensions={1,0}", "copy float32[4,8]", 128),
        ("f32[32]{0} reshape(%a)", "copy float32[32]", 128),
        ("f32[4,8]{0,1} bitcast(%a)", None, 0),  # a view
        ("f32[8,4]{1,0:S(1)} copy(%a)", "copy", 0),  # into another memory
        ("f32[8,4]{1,0} negate(%a)", "negate", 0),
        # A transpose that comes with arithmetic costs nothing of its own.
        ("f32[4,8]{1,0} fusion(%a), kind=kLoop, calls=%fused", "copy float32[4,8]", 128),
        ("f32[4,8]{1,0} fusion(%a), kind=kLoop, calls=%work", "fused transpose", 0),
    ],
)
def test_what_is_a_copy(line, label, copied):
    """It moves an array within one memory, and computes nothing; ``None`` stands for nothing that is started."""
    found = kernels("%a = f32[8,4]{1,0} parameter(0)", f"%c = {line}", before=FUSED)
    assert (dict(found.counts), found.copied_bytes) == ({label: 1} if label else {}, copied)


@pytest.mark.parametrize(
    ("layout", "axis", "written", "apart"),
    [
        ("{1,0}", 1, "inserted_window_dims={1}", True),
        ("{1,0}", 0, "inserted_window_dims={0}", False),  # whole rows, whose elements lie side by side
        ("{0,1}", 0, "inserted_window_dims={0}", True),
        ("{0,1:T(8,128)}", 1, "inserted_window_dims={1}", False),
        ("", 1, "inserted_window_dims={1}", True),  # without a layout the last axis is the fastest
        ("{1,0}", 1, "inserted_window_dims={}", True),  # as compilers write it: a window of one element
        ("{1,0}", 0, "inserted_window_dims={}", False),
    ],
)
def test_a_scatter_that_jumps(layout, axis, written, apart):
    """Its indices choose single elements along the fastest axis of what it writes to, however it says so."""
    windows = "{1}" if "{}" not in written else "{1,2}"
    shape = "64" if "{}" not in written else "64,1" if axis else "1,64"
    found = kernels(
        f"%a = f32[64,64]{layout} parameter(0)",
        "%i = s32[100,1] parameter(1)",
        f"%u = f32[100,{shape}] parameter(2)",
        f"%s = f32[64,64]{layout} scatter(%a, %i, %u), update_window_dims={windows}, {written}, "
        f"scatter_dims_to_operand_dims={{{axis}}}, index_vector_dim=1, to_apply=%add",
        before=ADD,
    )
    assert found.facts["scattered_bytes"] == (100 * 64 * 4 if apart else 0)
    assert list(found.counts) == ["scatter apart in float32[64,64]" if apart else "scatter"]


@pytest.mark.parametrize(("sizes", "axis", "apart"), [("{64,1}", 1, True), ("{64,2}", 1, False), ("{1,64}", 0, False)])
def test_a_gather_that_jumps(sizes, axis, apart):
    """Of a window of two elements each index gives neighbours."""
    found = kernels(
        "%a = f32[64,64]{1,0} parameter(0)",
        "%i = s32[100,1]{1,0} parameter(1)",
        f"%g = f32[100,64]{{1,0}} gather(%a, %i), offset_dims={{1}}, collapsed_slice_dims={{{axis}}}, "
        f"start_index_map={{{axis}}}, index_vector_dim=1, slice_sizes={sizes}",
    )
    assert found.facts["scattered_bytes"] == (100 * 64 * 4 if apart else 0)


@pytest.mark.jax_text
def test_columns_that_are_picked_by_a_compiled_function():
    """Rows are not, though there are as many numbers; the program names the line of the fusion."""

    def compiled(axis):
        places = jnp.arange(50, dtype=jnp.int32)
        picked = jax.jit(lambda table, at: jnp.sin(jnp.take(table, at, axis=axis)))
        return read_kernels(read_hlo(picked.lower(jnp.zeros((100, 100)), places).compile().as_text()))

    rows, columns = compiled(0), compiled(1)
    assert (rows.scattered_bytes, columns.scattered_bytes) == (0, 50 * 100 * 4)
    assert columns.lines["gather apart in float32[100,100]"].startswith("tests/observe/hlo/test_kernels.py:")


def test_a_loop_counts_as_often_as_it_turns():
    """One of unknown length once; a copy that the compiler put into it is at the line of the loop."""
    place = ', metadata={op_name="while" source_file="/somewhere/loop.py" source_line=7}'
    known, endless = (read_kernels(read_hlo(loop("f32[8]{0}", "copy(%x)", turns, place))) for turns in (5, None))
    assert known.facts == {"kernels": 5, "copied_bytes": 5 * 32, "scattered_bytes": 0}
    assert known.lines == {"copy float32[8]": "/somewhere/loop.py:7"}
    assert endless.facts == {"kernels": 1, "copied_bytes": 32, "scattered_bytes": 0}


def test_of_branches_the_dearest_counts():
    """A copy that is made only sometimes must not be missed."""
    found = kernels(
        "%p = pred[] parameter(0)",
        "%x = f32[8]{0} parameter(1)",
        "%c = f32[8]{0} conditional(%p, %x, %x), true_computation=%cheap, false_computation=%dear",
        before=branches("f32[8]{0}", "copy(%x)"),
    )
    assert found.facts == {"kernels": 1, "copied_bytes": 32, "scattered_bytes": 0}


@pytest.mark.parametrize("text", ["", "no HLO", program("%a = what is this")])
def test_what_cannot_be_read_is_unknown(text):
    found = read_kernels(read_hlo(text))
    assert found.facts == {"kernels": None, "copied_bytes": None, "scattered_bytes": None}
    assert found.unread
    assert set(found.unknown.values()) == {found.unread}


def test_a_compiled_function():
    """A carry that is read after it was written is copied in each turn; without that only when the loop begins."""

    def turns(read):
        def turn(table, place):
            return table.at[place].set(1.0), read(table, place)

        return jax.jit(lambda table: jax.lax.scan(turn, table, jnp.arange(20))).lower(jnp.zeros(5000)).compile()

    table = 5000 * 4
    kept, copied = turns(lambda table, place: place), turns(lambda table, place: table[place + 1])
    assert table <= compiled_facts(kept)["copied_bytes"] < 2 * table
    assert compiled_facts(copied)["copied_bytes"] >= 20 * table
