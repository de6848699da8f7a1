"""Bytes that move from and to a device's memory, by hand; and arrays in their tiles."""

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.hlo.demand import BYTES, count_traffic
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.hlo.shapes import read_shapes

HEAD = "HloModule jit_step, is_scheduled=true\n\n"
KB = 1024


def traffic(*lines, before=""):
    """The traffic of a program of these lines."""
    *others, last = lines
    body = "\n".join([*(f"  {line}" for line in others), f"  ROOT {last}"])
    return count_traffic(read_hlo(f"{HEAD}{before}ENTRY %main () -> f32[] {{\n{body}\n}}\n"))


def moved(*lines, before=""):
    """Its bytes, all of which are known."""
    found = traffic(*lines, before=before)
    assert not found.more
    return found.counts[BYTES]


@pytest.mark.parametrize(
    ("written", "nbytes", "tiled", "space"),
    [
        ("f32[8,128]{1,0:T(8,128)}", 4096, 4096, 0),
        ("f32[9,129]{1,0:T(8,128)}", 9 * 129 * 4, 16 * 256 * 4, 0),
        ("f32[9,129]{0,1:T(8,128)}", 9 * 129 * 4, 136 * 128 * 4, 0),
        ("bf16[9,128]{1,0:T(8,128)(2,1)S(1)}", 9 * 128 * 2, 16 * 128 * 2, 1),
        ("f32[]{:T(128)}", 4, 512, 0),
        ("f32[3,100]{1,0}", 1200, 1200, 0),
        ("f32[1,5,3]{2,1,0:T(8,128)}", 60, 8 * 128 * 4, 0),
        ("u32[]{:S(2)}", 4, 4, 2),
        ("s4[16,128]{1,0:T(8,128)E(4)}", 1024, 1024, 0),
    ],
)
def test_an_array_fills_its_tiles(written, nbytes, tiled, space):
    """The last axes in the order of the layout are filled up; a layout without tiles takes what the array has."""
    (shape,) = read_shapes(written)
    assert (shape.nbytes, shape.tiled_bytes, shape.space) == (nbytes, tiled, space)


def test_an_operation_reads_and_writes_each_array_once():
    """Two operands and a result; one that is taken twice is read once."""
    a, b = "%a = f32[256]{0} parameter(0)", "%b = f32[256]{0} parameter(1)"
    assert moved(a, b, "%c = f32[256]{0} add(%a, %b)") == 3 * KB
    assert moved(a, "%c = f32[256]{0} add(%a, %a)") == 2 * KB


def test_views_and_arguments_move_nothing():
    start = "%s = (f32[256]{0}, f32[256]{0}) parameter(0)"
    assert moved(start, "%x = f32[256]{0} get-tuple-element(%s), index=0", "%y = f32[16,16]{1,0} bitcast(%x)") == 0


def test_another_memory_is_no_traffic():
    """What is copied into VMEM is read once from the device's memory; what is computed there costs nothing."""
    assert (
        moved(
            "%a = f32[256]{0:T(256)} parameter(0)",
            "%s = (f32[256]{0:T(256)S(1)}, f32[256]{0:T(256)}, u32[]{:S(2)}) copy-start(%a)",
            "%d = f32[256]{0:T(256)S(1)} copy-done(%s)",
            "%y = f32[256]{0:T(256)S(1)} tanh(%d)",
            "%z = f32[256]{0:T(256)} negate(%y)",
        )
        == 2 * KB
    )


FUSED = """%fused (p0: f32[32,256], p1: s32[]) -> f32[256] {
  %p0 = f32[32,256]{1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %row = f32[1,256]{1,0} dynamic-slice(%p0, %p1, %zero), dynamic_slice_sizes={1,256}
  %flat = f32[256]{0} bitcast(%row)
  ROOT %out = f32[256]{0} tanh(%flat)
}

"""


def test_of_a_slice_in_a_fusion_the_slice_is_read():
    """One layer of 32: its row, the index, and the result."""
    lines = (
        "%w = f32[32,256]{1,0} parameter(0)",
        "%i = s32[] parameter(1)",
        "%f = f32[256]{0} fusion(%w, %i), kind=kLoop, calls=%fused",
    )
    assert moved(*lines, before=FUSED) == KB + 4 + KB
    whole = FUSED.replace("%out = f32[256]{0} tanh(%flat)", "%out = f32[32,256]{1,0} tanh(%p0)")
    assert (
        moved(*lines[:2], lines[2].replace("f32[256]{0} fusion", "f32[32,256]{1,0} fusion"), before=whole)
        == 64 * KB + 4
    )


UPDATED = """%inner (q0: f32[32,256], q1: f32[1,256], q2: s32[]) -> f32[32,256] {
  %q0 = f32[32,256]{1,0} parameter(0)
  %q1 = f32[1,256]{1,0} parameter(1)
  %q2 = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %out = f32[32,256]{1,0} dynamic-update-slice(%q0, %q1, %q2, %zero)
}

%fused (p0: f32[32,256], p1: f32[1,256], p2: s32[]) -> (f32[32,256], f32[1,256]) {
  %p0 = f32[32,256]{1,0} parameter(0)
  %p1 = f32[1,256]{1,0} parameter(1)
  %p2 = s32[] parameter(2)
  %y = f32[1,256]{1,0} tanh(%p1)
  %f = f32[32,256]{1,0} fusion(%p0, %y, %p2), kind=kLoop, calls=%inner
  ROOT %t = (f32[32,256]{1,0}, f32[1,256]{1,0}) tuple(%f, %y)
}

"""


def test_of_an_update_in_place_the_part_is_written():
    """A row of a stack, in a fusion within a fusion: the row is read, and written twice; the stack is not touched."""
    found = moved(
        "%w = f32[32,256]{1,0} parameter(0)",
        "%x = f32[1,256]{1,0} parameter(1)",
        "%i = s32[] parameter(2)",
        "%f = (f32[32,256]{1,0}, f32[1,256]{1,0}) fusion(%w, %x, %i), kind=kLoop, calls=%fused",
        before=UPDATED,
    )
    assert found == KB + 4 + KB + KB


def test_of_a_table_the_rows_are_read():
    """A gather takes four rows and their numbers, a scatter adds to four; the table of 32 rows stays."""
    table, places = "%t = f32[32,256]{1,0} parameter(0)", "%i = s32[4,1]{1,0} parameter(1)"
    assert moved(table, places, "%g = f32[4,256]{1,0} gather(%t, %i), slice_sizes={1,256}") == 4 * KB + 16 + 4 * KB
    rows = "%u = f32[4,256]{1,0} parameter(2)"
    assert moved(table, places, rows, "%s = f32[32,256]{1,0} scatter(%t, %i, %u)") == 16 + 4 * KB + 4 * KB


LOOP = """%body (s: (s32[], f32[256])) -> (s32[], f32[256]) {
  %s = (s32[], f32[256]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[256]{0} get-tuple-element(%s), index=1
  %y = f32[256]{0} tanh(%x)
  ROOT %t = (s32[], f32[256]{0}) tuple(%i, %y)
}

%cond (s: (s32[], f32[256])) -> pred[] {
  %s = (s32[], f32[256]{0}) parameter(0)
  ROOT %p = pred[] constant(true)
}

"""


def test_a_loop_moves_as_often_as_it_runs():
    """Thirty-two turns of one array read and one written."""
    turns = ', backend_config={"known_trip_count":{"n":"32"}}'
    start = "%s = (s32[], f32[256]{0}) parameter(0)"
    loop = "%w = (s32[], f32[256]{0}) while(%s), condition=%cond, body=%body"
    assert moved(start, loop + turns, before=LOOP) == 32 * 2 * KB
    assert list(traffic(start, loop, before=LOOP).more) == ["a loop of unknown length counts once"]


def test_a_collective_reads_and_writes_where_it_starts_and_ends():
    """The tuple between the two is no array of its own."""
    assert (
        moved(
            "%a = f32[64]{0} parameter(0)",
            "%s = (f32[64]{0}, f32[256]{0}) all-gather-start(%a), dimensions={0}, replica_groups={{0,1,2,3}}",
            "%d = f32[256]{0} all-gather-done(%s)",
        )
        == 256 + KB
    )


def test_what_a_library_moves_is_unknown():
    found = traffic("%a = f32[8]{0} parameter(0)", '%c = f32[8]{0} custom-call(%a), custom_call_target="__cudnn$fmha"')
    assert (found.counts[BYTES], list(found.more)) == (0, ["__cudnn$fmha is opaque"])


@pytest.mark.jax_text
def test_a_program_compiled_here_is_counted():
    """A scan over 32 rows reads each row once, not the stack 32 times."""

    def step(rows, x):
        return jax.lax.scan(lambda x, row: (x + row, None), x, rows)[0]

    text = jax.jit(step).lower(jnp.ones((32, 4096)), jnp.ones(4096)).compile().as_text()
    found = count_traffic(read_hlo(text))
    # Row, state and sum in each turn, a few copies of the state, and counters.
    assert 3 * 32 * 4096 * 4 <= found.counts[BYTES] < 3.5 * 32 * 4096 * 4
    assert not found.more


def test_what_goes_on_with_an_asynchronous_call_moves_nothing():
    read = "%a = f32[1024]{0} parameter(0)"
    update = "%u = ((f32[1024]{0}), f32[1024]{0}, u32[]) async-update(%s), calls=%wrapped"
    start = "%s = ((f32[1024]{0}), f32[1024]{0}, u32[]) async-start(%a), calls=%wrapped"
    done = "%d = f32[1024]{0} async-done(%u), calls=%wrapped"
    body = "%wrapped (p: f32[1024]) -> f32[1024] {\n  %p = f32[1024]{0} parameter(0)\n  ROOT %n = f32[1024]{0} negate(%p)\n}\n\n"
    without = [read, start, done.replace("%u", "%s")]
    assert traffic(read, start, update, done, before=body).counts == traffic(*without, before=body).counts
