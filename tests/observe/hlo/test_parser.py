"""Reading optimised HLO: stored texts of three platforms and two releases, programs compiled here, and text at random."""

import gzip
import re
import string
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import DATA

from jaxgate.observe.hlo.parser import COLLECTIVE_WORDS, UNREAD_CHARACTERS, read_hlo

STORED = sorted((DATA / "hlo").glob("*/*.hlo.gz"))
IDS = [f"{file.parent.name}-{file.name.split('.')[0]}" for file in STORED]
TEXTS = [gzip.decompress(file.read_bytes()).decode() for file in STORED]


def module(*lines, header="HloModule jit_f, num_partitions=8", entry="ENTRY %main (p: f32[4]) -> f32[4] {"):
    """A text with one computation."""
    return "\n".join([header, "", entry, "  %p = f32[4]{0} parameter(0)", *lines, "}", ""])


def only(line, **options):
    """The instruction that a line is read as."""
    hlo = read_hlo(module(line, **options))
    assert hlo.unread == ()
    return list(hlo.computations["main"].values())[-1]


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_every_line_of_real_text_is_read(text):
    """CPU, TPU and GPU text of both releases: as many instructions as indented lines, and nothing unread."""
    hlo = read_hlo(text)
    assert hlo.unread == ()
    lines = [line for line in text.split("\n") if line.startswith("  ")]
    found = [instruction for computation in hlo.computations.values() for instruction in computation.values()]
    assert [i.name for i in found] == [re.search(r"%([\w.\-]+) =", line)[1] for line in lines]
    assert [f" {i.opcode}({i.arguments}){i.attributes}" for i in found] == [
        line[-len(f" {i.opcode}({i.arguments}){i.attributes}") :] for i, line in zip(found, lines, strict=True)
    ]
    assert hlo.entry.startswith("main.")
    assert (hlo.num_partitions, hlo.replica_count) == (8, 1)
    headers = re.findall(r"^(?:ENTRY )?%([\w.\-]+) \(.*\{$", text, re.MULTILINE)
    assert list(hlo.computations) == headers


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_operands_are_found_in_their_computation(text):
    """Every operand of real text is an instruction beside its reader."""
    for computation in read_hlo(text).computations.values():
        for instruction in computation.values():
            assert set(instruction.operands) <= computation.keys()


@pytest.mark.parametrize(
    ("shape", "label", "nbytes"),
    [
        ("f32[64,64]{1,0}", ["float32[64,64]"], 16384),
        ("f32[]", ["float32[]"], 4),
        ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", ["bfloat16[8,128]"], 2048),
        ("s32[]{:T(128)}", ["int32[]"], 4),
        ("pred[3]{0}", ["bool[3]"], 3),
        ("u8[<=5]{0}", ["uint8[5]"], 5),
        ("c64[2]{0}", ["complex64[2]"], 16),
        ("f8e4m3fn[16]{0}", ["float8_e4m3fn[16]"], 16),
        ("s4[3]{0}", ["int4[3]"], 3),
        ("s4[3]{0:E(4)}", ["int4[3]"], 2),
        ("f64[0,7]{1,0}", ["float64[0,7]"], 0),
        ("token[]", ["token[]"], 0),
        ("()", [], 0),
        ("(f32[2]{0}, /*index=5*/s8[3]{0})", ["float32[2]", "int8[3]"], 11),
        ("((f32[2]{0:T(128)}), (s8[3]{0}, u32[]{:S(2)}))", ["float32[2]", "int8[3]", "uint32[]"], 15),
    ],
)
def test_shapes(shape, label, nbytes):
    """Types, extents, layouts and nested tuples become labels and bytes."""
    instruction = only(f"  ROOT %x = {shape} anything(%p)")
    assert [part.label for part in instruction.shapes] == label
    assert sum(part.nbytes for part in instruction.shapes) == nbytes


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


def test_a_long_program_is_read_whole():
    """3,400 instructions, as an unrolled network of 256 steps has them."""
    lines = [
        f'  %x.{n} = f32[4]{{0}} add(%p, %p), metadata={{op_name="jit(f)/add" stack_frame_id={n}}}' for n in range(3400)
    ]
    assert len(read_hlo(module(*lines)).computations["main"]) == 3401


NAME = st.from_regex(r"[a-z][a-z0-9_\-]{0,8}(\.[0-9]{1,3})?", fullmatch=True)
ARRAY = st.tuples(
    st.sampled_from(["f32", "bf16", "s8", "pred"]),
    st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from(["", ":T(8,128)S(1)"]),
).map(lambda part: f"{part[0]}[{','.join(map(str, part[1]))}]{{{','.join(map(str, range(len(part[1]))))}{part[2]}}}")
SHAPE = st.recursive(
    ARRAY, lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"({', '.join(parts)})"), max_leaves=5
)
QUOTED = st.text(string.ascii_letters + string.digits + " /(){}=,'", max_size=12)
INSTRUCTION = st.tuples(
    SHAPE, st.from_regex(r"[a-z][a-z\-]{0,10}[a-z]", fullmatch=True), st.lists(NAME, max_size=3), QUOTED
)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(st.dictionaries(NAME.filter(lambda name: name != "p"), INSTRUCTION, min_size=1, max_size=8))
def test_rendered_instructions_are_read_back(wanted):
    """Any list of instructions, written as XLA writes them, is read as it was."""
    wanted = {name: part for name, part in wanted.items() if not COLLECTIVE_WORDS.search(part[1])}
    lines = [
        f'  %{name} = {shape} {opcode}({", ".join("%" + operand for operand in operands)}), metadata={{op_name="{text}"}}'
        for name, (shape, opcode, operands, text) in wanted.items()
    ]
    hlo = read_hlo(module(*lines))
    assert hlo.unread == ()
    found = dict(list(hlo.computations["main"].items())[1:])
    assert list(found) == list(wanted)
    for name, (shape, opcode, operands, text) in wanted.items():
        instruction = found[name]
        assert (instruction.opcode, instruction.operands, instruction.op_name) == (opcode, tuple(operands), text)
        assert len(instruction.shapes) == len(re.findall(r"\w+\[", shape))


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(st.text(st.sampled_from(string.printable), max_size=300) | st.text(max_size=100))
def test_any_text_is_taken(text):
    """Nothing raises, and what is no HLO is unread line by line."""
    hlo = read_hlo(text)
    assert hlo.unread or not text.strip() or hlo.computations or text.lstrip("\n").startswith(("HloModule ", "F", "S"))
    assert all(len(line) <= UNREAD_CHARACTERS for line in hlo.unread)
