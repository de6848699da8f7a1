"""Reading optimised HLO: stored texts of three platforms and two releases, programs compiled here, and text at random."""

import re
import string
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo import STORED

from jaxgate.observe.hlo.parser import UNREAD_CHARACTERS, read_hlo


def module(*lines, header="HloModule jit_f, num_partitions=8", entry="ENTRY %main (p: f32[4]) -> f32[4] {"):
    return "\n".join([header, "", entry, "  %p = f32[4]{0} parameter(0)", *lines, "}", ""])


def only(line, **options):
    """The instruction that a line is read as."""
    hlo = read_hlo(module(line, **options))
    assert hlo.unread == ()
    return list(hlo.computations["main"].values())[-1]


@pytest.mark.parametrize("text", STORED.values(), ids=STORED)
def test_every_line_of_real_text_is_read(text):
    """CPU, TPU and GPU text of both releases: as many instructions as indented lines, each beside its operands."""
    hlo = read_hlo(text)
    assert hlo.unread == ()
    lines = [line for line in text.split("\n") if line.startswith("  ")]
    found = [(siblings, each) for siblings in hlo.computations.values() for each in siblings.values()]
    for line, (siblings, each) in zip(lines, found, strict=True):
        assert re.search(r"%([\w.\-]+) =", line)[1] == each.name
        assert line.endswith(f" {each.opcode}({each.arguments}){each.attributes}")
        assert set(each.operands) <= siblings.keys()
    assert hlo.entry.startswith("main.")
    assert (hlo.num_partitions, hlo.replica_count) == (8, 1)
    assert list(hlo.computations) == re.findall(r"^(?:ENTRY )?%([\w.\-]+) \(.*\{$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("written", "labels", "nbytes", "tiled"),
    [
        ("f32[64,64]{1,0}", ["float32[64,64]"], 16384, 16384),
        ("f32[]", ["float32[]"], 4, 4),
        ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", ["bfloat16[8,128]"], 2048, 2048),
        ("s32[]{:T(128)}", ["int32[]"], 4, 512),
        ("pred[3]{0}", ["bool[3]"], 3, 3),
        ("u8[<=5]{0}", ["uint8[5]"], 5, 5),
        ("c64[2]{0}", ["complex64[2]"], 16, 16),
        ("f8e4m3fn[16]{0}", ["float8_e4m3fn[16]"], 16, 16),
        ("s4[3]{0}", ["int4[3]"], 3, 3),
        ("s4[3]{0:E(4)}", ["int4[3]"], 2, 2),
        ("f64[0,7]{1,0}", ["float64[0,7]"], 0, 0),
        ("token[]", ["token[]"], 0, 0),
        ("()", [], 0, 0),
        ("(f32[2]{0}, /*index=5*/s8[3]{0})", ["float32[2]", "int8[3]"], 11, 11),
        ("((f32[2]{0:T(128)}), (s8[3]{0}, u32[]{:S(2)}))", ["float32[2]", "int8[3]", "uint32[]"], 15, 512 + 7),
        ("f32[9,129]{1,0:T(8,128)}", ["float32[9,129]"], 9 * 129 * 4, 16 * 256 * 4),
        ("f32[9,129]{0,1:T(8,128)}", ["float32[9,129]"], 9 * 129 * 4, 136 * 128 * 4),
        ("bf16[9,128]{1,0:T(8,128)(2,1)}", ["bfloat16[9,128]"], 9 * 128 * 2, 16 * 128 * 2),
        ("f32[1,5,3]{2,1,0:T(8,128)}", ["float32[1,5,3]"], 60, 8 * 128 * 4),
        ("s4[16,128]{1,0:T(8,128)E(4)}", ["int4[16,128]"], 1024, 1024),
    ],
)
def test_shapes(written, labels, nbytes, tiled):
    """Types, extents and nested tuples become labels and bytes; the last axes in a layout's order fill up its tiles."""
    shapes = only(f"  ROOT %x = {written} anything(%p)").shapes
    assert [shape.label for shape in shapes] == labels
    assert (sum(shape.nbytes for shape in shapes), sum(shape.tiled_bytes for shape in shapes)) == (nbytes, tiled)


def test_memories_are_told_apart():
    shapes = only("  ROOT %x = (f32[8]{0}, f32[8]{0:T(256)S(1)}, u32[]{:S(2)}) anything(%p)").shapes
    assert [shape.space for shape in shapes] == [0, 1, 2]


def test_unknown_operations_are_words():
    """An operation that nobody has heard of is read like any other."""
    instruction = only('  ROOT %x.1 = f32[4]{0} frobnicate-start(%p, %p), depth={1,2}, config={"a":"( %z = {"}')
    assert (instruction.name, instruction.opcode, instruction.operands) == ("x.1", "frobnicate-start", ("p", "p"))
    assert instruction.attributes == ', depth={1,2}, config={"a":"( %z = {"}'
    assert instruction.root


def test_what_a_library_is_handed_is_no_second_instruction():
    """Beside callbacks XLA writes attributes of MLIR."""
    line = '  ROOT %io.1 = token[] custom-call(%p), custom_call_target="python", backend_config={index = 0 : ui64}'
    assert (only(line).opcode, only(line).operands) == ("custom-call", ("p",))


LINES = {
    "settings-that-do-not-end": "  %x = f32[4]{0} custom-call(%p), config={index = 0  %y = f32[4]{0} add(%p, %p)",
    "no-shape": "  %x = add(%p, %p)",
    "unknown-type": "  %x = q17x[4]{0} add(%p, %p)",
    "unknown-extent": "  %x = f32[?]{0} add(%p, %p)",
    "open-parenthesis": "  %x = f32[4]{0} add(%p, %p",
    "open-tuple": "  %x = (f32[4]{0}, f32[4]{0} add(%p, %p)",
    "no-comma": "  %x = f32[4]{0} add(%p, %p) metadata={}",
    "two-in-one": "  %x = f32[4]{0} add(%p, %p), a={}  %y = f32[4]{0} all-reduce(%p), to_apply=%add",
    "second-in-attributes": "  %x = f32[4]{0} add(%p, %p), a=all-reduce(%p), to_apply=%add",
    "second-in-a-string": '  %x = f32[4]{0} add(%p, %p), a="all-reduce(%p)", to_apply=%add',
    "second-in-half-a-string": '  %x = f32[4]{0} add(%p, %p), a={"b,"ll-reduce(%p), metadata={op_name="c"}',
    "name-twice": "  %p = f32[4]{0} add(%p, %p)",
    "no-instruction": "  something else",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_that_is_not_understood_is_kept(line):
    """The line is unread, cut, and what stands around it is read."""
    hlo = read_hlo(module(line, "  ROOT %z = f32[4]{0} copy(%p)"))
    assert hlo.unread == (
        line.strip()[: UNREAD_CHARACTERS - 1] + "…" if len(line) > UNREAD_CHARACTERS else line.strip(),
    )
    assert list(hlo.computations["main"]) == ["p", "z"]


def test_a_cut_line_keeps_the_collective_in_sight():
    """What a caller looks for in a long unread line survives the cut."""
    line = f"  %x = ({', '.join(['f32[4]{0}'] * 30)} all-reduce(%p)"
    (unread,) = read_hlo(module(line)).unread
    assert len(unread) == UNREAD_CHARACTERS - 60 + len("all-reduce(%p)")
    assert unread.startswith("%x = (f32[4]{0}, ")
    assert unread.endswith("…all-reduce(%p)")


STRUCTURE = {
    "computation-twice": ("}\n", "}\n\n%main (q: f32[4]) -> f32[4] {\n  ROOT %y = f32[4]{0} all-reduce(%q)\n}\n", 3),
    "second-entry": ("}\n", "}\n\nENTRY %other () -> f32[4] {\n  ROOT %y = f32[4]{0} all-reduce(%q)\n}\n", 3),
    "never-closed": ("}\n", "", 1),
    "stray-line": ("ENTRY", "Tables of the future\n1 {}\n\nENTRY", 2),
    "head-twice": ("ENTRY", "HloModule again\n\nENTRY", 1),
    "headless": ("ENTRY %main (p: f32[4]) -> f32[4] {", "", 2),
}


@pytest.mark.parametrize(("old", "new", "unread"), STRUCTURE.values(), ids=STRUCTURE)
def test_broken_structure_is_told(old, new, unread):
    """A text that is cut, mixed up or from the future has unread lines; a hidden collective is among them."""
    text = module()
    assert read_hlo(text).unread == ()
    hlo = read_hlo(text.replace(old, new))
    assert len(hlo.unread) == unread
    assert "all-reduce" not in new or any("all-reduce" in line for line in hlo.unread)


TABLES = """HloModule jit_f

FileNames
1 "/home/user/model.py"
2 "%s"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=0 end_column=1}
2 {file_name_id=2 function_name_id=1 line=9 end_line=9 column=0 end_column=1}

StackFrames
1 {file_location_id=1 parent_frame_id=%d}
2 {file_location_id=2 parent_frame_id=%d}
3 {file_location_id=3 parent_frame_id=%d}

"""


@pytest.mark.parametrize("parents", [(1, 2, 3), (0, 1, 2)], ids=["plus-one", "plain"])
def test_the_innermost_line_of_the_project_is_found(parents):
    """A frame of a library is passed over, whichever way the parents are counted; a missing frame is no line."""
    header = TABLES % (jnp.__file__, *parents)
    line = '  ROOT %%x = f32[4]{0} add(%%p, %%p), metadata={op_name="jit(f)/add" stack_frame_id=%d}'
    assert only(line % 1, header=header).line == "/home/user/model.py:7"
    assert only(line % 2, header=header).line == "/home/user/model.py:7"
    assert only(line % 4, header=header).line == ""


def test_lines_beside_the_instruction_are_read():
    """The older spelling, and a name with quotes in it."""
    line = '  ROOT %%x = f32[4]{0} add(%%p, %%p), metadata={op_name="p[\\\'a\\\']" source_file="%s" source_line=12}'
    instruction = only(line % "/home/user/model.py")
    assert (instruction.line, instruction.op_name) == ("/home/user/model.py:12", "p['a']")
    assert only(line % jnp.__file__).line == ""


@pytest.mark.jax_text
def test_a_program_compiled_here_names_its_lines():
    def step(x):
        return jnp.tanh(x @ x).sum()

    hlo = read_hlo(jax.jit(step).lower(jnp.ones((64, 64))).compile().as_text())
    assert hlo.unread == ()
    lines = {
        i.line for computation in hlo.computations.values() for i in computation.values() if "dot_general" in i.op_name
    }
    here = step.__code__.co_firstlineno + 1
    assert {Path(line).name for line in lines} == {f"{Path(__file__).name}:{here}"}


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(st.text(st.sampled_from(string.printable), max_size=300) | st.text(max_size=100))
def test_any_text_is_taken(text):
    """Nothing raises, and what is no HLO is unread line by line."""
    hlo = read_hlo(text)
    assert hlo.unread or not text.strip() or hlo.computations or text.lstrip("\n").startswith(("HloModule ", "F", "S"))
    assert all(len(line) <= UNREAD_CHARACTERS for line in hlo.unread)
