"""The largest allocations of a program: size, kind, operation, line; and a reason where they cannot be read."""

import inspect
from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgate.observe.hlo.buffers import Allocation, Allocations, largest_allocations, read_message, rows_of

N = 256
SQUARE = N * N * 4
TABLE = np.arange(4096, dtype=np.float32)


def step(state, vector):
    """One temporary that dominates, an argument that is reused, a captured table."""
    with jax.named_scope("attention"):
        scores = jnp.sort(jnp.outer(vector, vector).repeat(16, axis=0), axis=0)  # the dominating line
    return {"w": state["w"] + 1}, scores[:4].sum() + jnp.asarray(TABLE)[vector.astype(int)].sum()


def line_of(words):
    """The line of this file that holds some words."""
    source, start = inspect.getsourcelines(step)
    (found,) = [start + index for index, line in enumerate(source) if words in line]
    return f"tests/observe/hlo/test_buffers.py:{found}"


@pytest.fixture(scope="module")
def executable():
    """The program, compiled with its state donated."""
    return jax.jit(step, donate_argnums=0).lower({"w": jnp.ones((N, N))}, jnp.ones(N)).compile()


@pytest.mark.jax_text
def test_the_dominating_temporary_names_its_line(executable):
    """The first of the list is the sort's, with the scope and the very line that makes it."""
    found = largest_allocations(executable)
    assert found.why_not == ""
    first = found.largest[0]
    assert (first.nbytes, first.kind, first.alive_at_peak) == (16 * SQUARE, "temp", None)
    assert first.op_name.startswith("jit(step)/attention/")
    assert first.line == line_of("the dominating line")
    assert str(first) == f"4.2 MB temp {first.opcode} {first.op_name} at {first.line}"
    # The donated state is one allocation, for what comes in and what goes out, and goes by its path.
    (state,) = [each for each in found.largest if "state" in each.op_name]
    assert (state.nbytes, state.kind, state.opcode, state.op_name) == (SQUARE, "argument", "parameter", "state['w']")


def test_the_list_is_sorted_and_cut(executable):
    every = largest_allocations(executable, count=1000).largest
    sizes = [each.nbytes for each in every]
    assert sizes == sorted(sizes, reverse=True)
    assert len(largest_allocations(executable).largest) == 10 < len(every)
    assert largest_allocations(executable, count=2).largest == every[:2]
    assert {each.kind for each in every} >= {"argument", "temp", "output", "constant"}


class Fake:
    """An executable of these messages."""

    def __init__(self, assignment, module, text, **sizes):
        self.serialized_buffer_assignment_proto = assignment
        self.as_serialized_hlo_module_proto = lambda: module
        self.as_text = lambda: text
        vars(self).update(sizes)

    def memory_analysis(self):
        return self

    def runtime_executable(self):
        return self

    def hlo_modules(self):
        return [self]


@pytest.fixture(scope="module")
def fake(executable):
    """The program with some of what it is read from replaced."""
    memory = executable.memory_analysis()
    sizes = {name: getattr(memory, name) for name in dir(memory) if name.endswith("_size_in_bytes")}
    whole = {
        "assignment": memory.serialized_buffer_assignment_proto,
        "module": executable.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto(),
        "text": executable.as_text(),
    }

    def make(**changes):
        return Fake(**{name: changes.get(name, lambda real: real)(real) for name, real in whole.items()}, **sizes)

    assert largest_allocations(make()) == largest_allocations(executable)  # as good as the real one
    return make


@pytest.mark.parametrize("content", [None, b""])
def test_a_backend_without_a_list_says_so(fake, content):
    found = largest_allocations(fake(assignment=lambda _: content))
    assert found == Allocations(why_not="this compiler does not list its allocations")


def test_a_text_that_is_not_understood_costs_no_list(executable, fake):
    """Sizes and kinds stay, each with the operation's own name, as the module has it."""
    found = largest_allocations(fake(text=lambda _: "?"))
    whole = largest_allocations(executable)
    assert found.why_not == ""
    assert Counter((each.nbytes, each.kind) for each in found.largest) == Counter(
        (each.nbytes, each.kind) for each in whole.largest
    )
    assert {(each.opcode, each.line) for each in found.largest} == {("", "")}
    assert str(found.largest[0]) == f"4.2 MB temp {found.largest[0].op_name}"


def test_an_executable_that_tells_nothing_is_a_reason():
    found = largest_allocations(object())
    assert found.why_not.startswith("the compiler's list of allocations cannot be read: 'object' object has no ")


@settings(max_examples=200, deadline=None)
@given(
    garbage=st.none() | st.binary(max_size=300), place=st.floats(0, 1), part=st.sampled_from(["assignment", "module"])
)
def test_a_damaged_list_is_never_shown_as_the_whole(executable, fake, garbage, place, part):
    """Cut anywhere, also between two fields, it is the whole list of what is large, or a reason; garbage is no exception."""

    def damaged(content):
        at = int(place * (len(content) - 1))
        return content[:at] if garbage is None else content[:at] + garbage + content[at + len(garbage) :]

    found = largest_allocations(fake(**{part: damaged}))
    assert bool(found.largest) != bool(found.why_not)
    if found.largest and garbage is None:
        whole = largest_allocations(executable).largest
        assert [(each.nbytes, each.kind) for each in found.largest] == [(each.nbytes, each.kind) for each in whole]


# The wire, and a trace of the heap as GPUs have one


def varint(value):
    """A number of the wire."""
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def encode(*fields):
    """A message from pairs of field and value."""
    found = b""
    for field, value in fields:
        if isinstance(value, int):
            found += varint(field << 3) + varint(value)
        else:
            content = value.encode() if isinstance(value, str) else value
            found += varint(field << 3 | 2) + varint(len(content)) + content
    return found


def test_numbers_and_fixed_fields_are_read():
    """Numbers of up to 64 bits, and fields of four and eight bytes."""
    assert read_message(encode((1, 2**64 - 1), (2, 300))) == {1: [2**64 - 1], 2: [300]}
    assert read_message(varint(3 << 3 | 1) + b"12345678" + varint(4 << 3 | 5) + b"1234") == {
        3: [b"12345678"],
        4: [b"1234"],
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x80", "it ends within a number"),
        (b"\x08" + b"\xff" * 10, "more than 64 bits"),
        (b"\x0a\x05abc", "it ends within a field"),
        (b"\x0b", "the unknown kind 3"),
    ],
)
def test_what_is_no_message_is_refused(content, problem):
    with pytest.raises(ValueError, match=problem):
        read_message(content)


ALLOC, FREE, SHARE = 0, 1, 2


def traced(events):
    """The allocations of three temporaries in one heap, whose peak has the last two alive, and of an argument."""
    sizes = {1: 20, 2: 30, 3: 30, 4: 30, 5: 8}
    buffers = [(1, encode((1, i), (2, size), (3, encode((4, 100 + i))))) for i, size in sizes.items()]
    slots = [(1, 0, 20), (2, 30, 30), (3, 0, 30), (4, 0, 30)]
    heap = encode((1, 7), (2, 60), *((9, encode((1, b), (2, at), (3, n))) for b, at, n in slots))
    argument = encode((1, 8), (2, 8), (5, 1), (9, encode((1, 5), (2, 0), (3, 8))))
    trace = encode(*((1, encode((1, k), (2, b), (5, c))) for k, b, c in events), (3, 7))
    ops = [(2, encode((1, f"op.{i}"), (35, 100 + i))) for i in sizes]
    lines = [f'  %op.{i} = f32[] add(), metadata={{op_name="jit(f)/{i}"}}' for i in sizes]
    assignment = encode(*buffers, (3, heap), (3, argument), (4, trace))
    module = encode((1, "jit_f"), (3, encode((1, "main"), *ops)))
    text = "\n".join(("HloModule jit_f", "", "ENTRY %main {", *lines, "}"))
    return largest_allocations(Fake(assignment, module, text, temp_size_in_bytes=60, argument_size_in_bytes=8)).largest


def test_a_trace_tells_what_is_alive_at_the_peak():
    """The first is freed before the heap is fullest; an argument has no trace, and nothing is said of it."""
    events = [(ALLOC, 1, 0), (ALLOC, 2, 0), (FREE, 1, 0), (ALLOC, 3, 0), (SHARE, 4, 3), (FREE, 3, 0), (FREE, 4, 0)]
    found = traced(events)
    assert [(each.op_name, each.nbytes, each.alive_at_peak) for each in found] == [
        ("jit(f)/2", 30, True),
        ("jit(f)/3", 30, True),
        ("jit(f)/1", 20, False),
        ("jit(f)/5", 8, None),
    ]
    assert str(found[2]) == "20 B temp add jit(f)/1, not alive at the peak"
    assert str(found[0]) == "30 B temp add jit(f)/2, alive at the peak"


def test_what_shares_a_place_takes_no_more():
    """Ten times shared is not ten times the size: the peak is where two buffers of their own are alive."""
    events = [(ALLOC, 3, 0), (SHARE, 4, 3), (FREE, 4, 0), (FREE, 3, 0), (ALLOC, 1, 0), (ALLOC, 2, 0)]
    found = {each.op_name: each.alive_at_peak for each in traced(events)}
    assert found == {"jit(f)/2": True, "jit(f)/3": False, "jit(f)/1": True, "jit(f)/5": None}


def test_allocations_that_read_alike_are_one_row():
    """Four layers of one size are one line with a count; ten lines are shown at most, the largest first."""
    one = Allocation(nbytes=8, kind="temp", opcode="sort", op_name="jit(f)/sort", line="", alive_at_peak=None)
    others = [replace(one, nbytes=size) for size in range(7, 0, -1)]
    assert rows_of([one, one, replace(one, kind="output"), one]) == (
        "3 × 8 B temp sort jit(f)/sort",
        "8 B output sort jit(f)/sort",
    )
    assert rows_of([one, *others], count=3) == tuple(f"{n} B temp sort jit(f)/sort" for n in (8, 7, 6))
    assert str(replace(one, opcode="copy", op_name="copy.3")) == "8 B temp copy copy.3"  # the compiler's: no line
