"""What is alive when a scheduled program needs most, by hand: aliases, loops, branches, donation, other memories."""

from __future__ import annotations

import pytest

from jaxgate.observe.hlo import read_hlo
from jaxgate.observe.hlo.liveness import UnreadableScheduleError, find_peak

KB = 1024
HEAD = "HloModule jit_step, is_scheduled=true"


def peak(*lines, before="", head=HEAD):
    """The peak of a program of these lines."""
    *others, last = lines
    body = "\n".join([*(f"  {line}" for line in others), f"  ROOT {last}"])
    return find_peak(read_hlo(f"{head}\n\n{before}ENTRY %main () -> f32[] {{\n{body}\n}}\n"), head)


def alive(*lines, **options):
    """Bytes and kind of what is alive at the peak, largest first."""
    return [(buffer.nbytes, buffer.kind) for buffer in peak(*lines, **options).alive]


A = "%a = f32[256]{0} parameter(0)"


def test_an_array_lives_from_its_maker_to_its_last_reader():
    """Two large arrays one after the other never lie beside each other; an argument stays for the whole call."""
    found = peak(
        A,
        "%b = f32[1024]{0} broadcast(%a)",
        "%c = f32[8]{0} reduce(%b, %a)",
        "%d = f32[2048]{0} broadcast(%c)",
        "%e = f32[8]{0} reduce(%d, %c)",
    )
    assert [(b.nbytes, b.kind, b.makers[0].name) for b in found.alive] == [
        (8 * KB, "temp", "d"),
        (KB, "argument", "a"),
        (32, "output", "e"),
        (32, "temp", "c"),
    ]
    assert found.nbytes == 9 * KB + 64


def test_arrays_that_live_at_once_add_up():
    """Both are read by the last."""
    lines = (A, "%b = f32[1024]{0} broadcast(%a)", "%c = f32[1024]{0} broadcast(%a)", "%d = f32[8]{0} dot(%b, %c)")
    assert alive(*lines) == [(4 * KB, "temp"), (4 * KB, "temp"), (KB, "argument"), (32, "output")]


def test_views_are_no_arrays():
    """A bitcast, a tuple and its elements are where their operand lies."""
    assert alive(
        A,
        "%b = f32[1024]{0} broadcast(%a)",
        "%t = (f32[1024]{0}, f32[256]{0}) tuple(%b, %a)",
        "%x = f32[1024]{0} get-tuple-element(%t), index=0",
        "%y = f32[32,32]{1,0} bitcast(%x)",
        "%z = f32[8]{0} reduce(%y, %a)",
    ) == [(4 * KB, "temp"), (KB, "argument"), (32, "output")]


def test_another_memory_takes_no_room():
    """What lies in VMEM does not count; tiles do."""
    assert alive(
        A,
        "%b = f32[1024]{0:T(1024)S(1)} broadcast(%a)",
        "%c = f32[3,100]{1,0:T(8,128)} reduce(%b)",
        "%d = f32[8]{0} reduce(%c)",
    ) == [(4 * KB, "temp"), (KB, "argument"), (32, "output")]


def test_a_donated_argument_is_its_result():
    """One place for both, and none for the result beside it."""
    lines = (A, "%b = f32[256]{0} negate(%a)")
    assert alive(*lines) == [(KB, "argument"), (KB, "output")]
    donated = f"{HEAD}, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}, entry_computation_layout={{}}"
    assert alive(*lines, head=donated) == [(KB, "argument")]
    second = donated.replace("{}: (0", "{1}: (0")
    pair = (*lines, "%c = f32[512]{0} broadcast(%a)", "%t = (f32[512]{0}, f32[256]{0}) tuple(%c, %b)")
    assert alive(*pair, head=second) == [(2 * KB, "output"), (KB, "argument")]


def test_an_elementwise_fusion_takes_the_place_of_what_it_reads_last():
    """As compilers do; not where somebody reads it later, and not of an argument."""
    made = (A, "%b = f32[1024]{0} broadcast(%a)", "%c = f32[1024]{0} fusion(%b), kind=kLoop, calls=%f")
    before = "%f (p: f32[1024]) -> f32[1024] {\n  ROOT %p = f32[1024]{0} parameter(0)\n}\n\n"
    assert alive(*made, "%d = f32[8]{0} reduce(%c)", before=before) == [
        (4 * KB, "temp"),
        (KB, "argument"),
        (32, "output"),
    ]
    later = alive(*made, "%d = f32[8]{0} dot(%b, %c)", before=before)
    assert later == [(4 * KB, "temp"), (4 * KB, "temp"), (KB, "argument"), (32, "output")]


def test_an_asynchronous_copy_keeps_its_source_until_it_is_done():
    """And its target from its start."""
    assert alive(
        A,
        "%b = f32[1024]{0} broadcast(%a)",
        "%s = (f32[1024]{0}, f32[1024]{0}, u32[]) copy-start(%b)",
        "%x = f32[2048]{0} broadcast(%a)",
        "%y = f32[8]{0} reduce(%x)",
        "%d = f32[1024]{0} copy-done(%s)",
        "%z = f32[8]{0} dot(%d, %y)",
    ) == [(8 * KB, "temp"), (4 * KB, "temp"), (4 * KB, "temp"), (KB, "argument"), (32, "temp")]


LOOP = """%body (s: (s32[], f32[1024])) -> (s32[], f32[1024]) {
  %s = (s32[], f32[1024]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[1024]{0} get-tuple-element(%s), index=1
  %wide = f32[4096]{0} broadcast(%x)
  %y = f32[1024]{0} reduce(%wide)
  ROOT %t = (s32[], f32[1024]{0}) tuple(%i, %y)
}

%cond (s: (s32[], f32[1024])) -> pred[] {
  %s = (s32[], f32[1024]{0}) parameter(0)
  %c = s32[] get-tuple-element(%s), index=0
  ROOT %p = pred[] compare(%c, %c), direction=LT
}

"""


def test_a_loop_has_its_state_once_and_the_peak_of_its_body():
    """What a turn gives lies where the next turn reads it."""
    found = peak(
        A,
        "%n = s32[] constant(0)",
        "%b = f32[1024]{0} broadcast(%a)",
        "%s = (s32[], f32[1024]{0}) tuple(%n, %b)",
        "%w = (s32[], f32[1024]{0}) while(%s), condition=%cond, body=%body",
        "%x = f32[1024]{0} get-tuple-element(%w), index=1",
        "%z = f32[8]{0} reduce(%x)",
        before=LOOP,
    )
    assert [(b.nbytes, [made.name for made in b.makers]) for b in found.alive] == [
        (16 * KB, ["wide"]),
        (4 * KB, ["b", "y", "w"]),
        (KB, ["a"]),
    ]


def test_a_result_of_a_loop_lies_where_it_is_returned():
    """From before the loop on, as its state is made there."""
    lines = (
        A,
        "%n = s32[] constant(0)",
        "%b = f32[1024]{0} broadcast(%a)",
        "%s = (s32[], f32[1024]{0}) tuple(%n, %b)",
        "%w = (s32[], f32[1024]{0}) while(%s), condition=%cond, body=%body",
        "%x = f32[1024]{0} get-tuple-element(%w), index=1",
    )
    assert alive(*lines, before=LOOP) == [(16 * KB, "temp"), (4 * KB, "output"), (KB, "argument")]


UPDATE = """%f (p: f32[32,256], q: f32[1,256], i: s32[]) -> f32[32,256] {
  %p = f32[32,256]{1,0} parameter(0)
  %q = f32[1,256]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %b = f32[32,256]{1,0} bitcast(%p)
  ROOT %u = f32[32,256]{1,0} dynamic-update-slice(%b, %q, %i, %i)
}

"""


def test_an_update_in_place_takes_no_room():
    """A fusion that replaces a row writes into its operand."""
    assert alive(
        A,
        "%n = s32[] constant(0)",
        "%stack = f32[32,256]{1,0} broadcast(%a)",
        "%row = f32[1,256]{1,0} bitcast(%a)",
        "%u = f32[32,256]{1,0} fusion(%stack, %row, %n), kind=kLoop, calls=%f",
        "%z = f32[8]{0} reduce(%u)",
        before=UPDATE,
    ) == [(32 * KB, "temp"), (KB, "argument"), (32, "output")]


BRANCHES = """%dear (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  %wide = f32[4096]{0} broadcast(%p)
  ROOT %y = f32[256]{0} reduce(%wide)
}

%cheap (q: f32[256]) -> f32[256] {
  %q = f32[256]{0} parameter(0)
  %some = f32[2048]{0} broadcast(%q)
  ROOT %z = f32[256]{0} reduce(%some)
}

"""


def test_of_branches_only_one_takes_room():
    """The dearer one makes the peak; both give their result in one place."""
    assert alive(
        A,
        "%p = pred[] parameter(1)",
        "%c = f32[256]{0} conditional(%p, %a, %a), true_computation=%dear, false_computation=%cheap",
        before=BRANCHES,
    ) == [(16 * KB, "temp"), (KB, "argument"), (KB, "output"), (1, "argument")]


def test_what_has_no_schedule_is_refused():
    """And what is not understood."""
    with pytest.raises(UnreadableScheduleError, match="is not scheduled"):
        peak(A, "%b = f32[256]{0} negate(%a)", head="HloModule jit_step")
    with pytest.raises(UnreadableScheduleError, match="not understood"):
        peak(A, "%b = what is this")
    with pytest.raises(UnreadableScheduleError, match="%x names no element"):
        peak("%s = (f32[8]{0}, f32[8]{0}) parameter(0)", "%x = f32[8]{0} get-tuple-element(%s)")
