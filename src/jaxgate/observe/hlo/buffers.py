"""The largest allocations of a compiled program, with the operation and the project's line that made each.

They explain a verdict and never make one: where a compiler keeps no list, as those for targets, or another one than is
known here, the answer is a reason. The list is a protocol buffer whose schema no package brings; what it says of an
operation is a number, and the module as bytes has the name for it. All else of the operation is read from the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import jax

from jaxgate.observe.errors import size_text
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.source_lines import at


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """One place in memory that the compiler has given to one or more arrays of a program."""

    nbytes: int  # its size on one device
    kind: str  # `argument`, `output`, `temp`, `constant` or `thread-local`
    opcode: str  # the operation that makes what lies there: `sort`, `fusion`, `parameter`; empty if unknown
    op_name: str  # its JAX name with all scopes: `jit(step)/attention/dot_general`; for an argument its path
    line: str  # the project's line: `model.py:12`; empty if none is known
    # whether it holds one of them when the program needs most; `None` where the backend keeps no trace of its heap, as
    # on CPU
    alive_at_peak: bool | None

    def __str__(self) -> str:
        """One line for people."""
        peak = {True: ", alive at the peak", False: ", not alive at the peak", None: ""}[self.alive_at_peak]
        words = size_text(self.nbytes), self.kind, self.opcode, self.op_name
        return " ".join(word for word in words if word) + at(self.line) + peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocations:
    """The largest allocations, largest first; ``why_not`` says why there are none."""

    largest: tuple[Allocation, ...] = ()
    why_not: str = ""


def rows_of(allocations: Iterable[Allocation], count: int = 10) -> tuple[str, ...]:
    """One line for each allocation, those that read alike in one: ``4 × 524.3 kB temp fusion …``."""
    alike = Counter(str(allocation) for allocation in allocations)
    rows = [line if times == 1 else f"{times} × {line}" for line, times in alike.items()]
    return tuple(rows[:count])


def largest_allocations(executable: jax.stages.Compiled, count: int = 10) -> Allocations:
    """List the largest allocations of a program. Never raises: what cannot be read is a reason."""
    try:
        memory = executable.memory_analysis()
        content = getattr(memory, "serialized_buffer_assignment_proto", None)
        if not content:
            return Allocations(why_not="this compiler does not list its allocations")
        assignment = read_message(content)
        _refuse_incomplete(assignment, memory)
        found = sorted(_allocations(assignment, _operations(executable)), key=lambda each: -each.nbytes)
    except Exception as error:  # noqa: BLE001 - undocumented bytes: a verdict must not be lost over them
        problem = str(error).partition("\n")[0] or type(error).__name__
        return Allocations(why_not=f"the compiler's list of allocations cannot be read: {problem}")
    return Allocations(largest=tuple(found[:count]), why_not="" if found else "the program allocates nothing")


# Field numbers of xla.BufferAssignmentProto and of what is in it.
_BUFFERS, _ALLOCATIONS, _TRACES = 1, 3, 4
_BUFFER_ID, _BUFFER_SIZE, _DEFINED_AT, _INSTRUCTION = 1, 2, 3, 4
_INDEX, _SIZE, _ASSIGNED = 1, 2, 9
_KINDS = {3: "thread-local", 5: "argument", 12: "constant", 7: "output"}  # the first that is set
_SLOT_BUFFER, _SLOT_OFFSET, _SLOT_SIZE = 1, 2, 3
_EVENTS, _TRACE_OF = 1, 3
_EVENT_KIND, _EVENT_BUFFER, _EVENT_SHARES = 1, 2, 5
_FREE, _SHARE = 1, 2
# Of xla.HloModuleProto.
_COMPUTATIONS, _INSTRUCTIONS, _NAME, _ID = 3, 2, 1, 35


def _operations(executable: jax.stages.Compiled) -> Mapping[int, tuple[str, str, str]]:
    """Opcode, JAX name and project line of each operation, by its number."""
    computations = read_hlo(executable.as_text() or "").computations.values()
    known = {name: instruction for computation in computations for name, instruction in computation.items()}
    module = read_message(executable.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    found = {}
    for message in chain.from_iterable(_messages(each, _INSTRUCTIONS) for each in _messages(module, _COMPUTATIONS)):
        name = _content(message[_NAME][-1]).decode()
        made = known.get(name)
        found[_number(message, _ID)] = (made.opcode, made.op_name or name, made.line) if made else ("", name, "")
    return found


def _kind(allocation: Message) -> str:
    return next((kind for field, kind in _KINDS.items() if _number(allocation, field)), "temp")


def _refuse_incomplete(assignment: Message, memory: Any) -> None:
    """Refuse a list that does not add up to what the same compiler says in ``memory_analysis()``.

    Raises:
        ValueError: If arguments or temporaries are missing.
    """
    for kind in ("argument", "temp"):
        listed = sum(_number(each, _SIZE) for each in _messages(assignment, _ALLOCATIONS) if _kind(each) == kind)
        said = sum(int(getattr(memory, f"{place}{kind}_size_in_bytes", 0)) for place in ("", "host_"))
        if listed != said:
            raise ValueError(f"it holds {listed:,} bytes of {kind}s, the program has {said:,}")


def _allocations(assignment: Message, operations: Mapping[int, tuple[str, str, str]]) -> Iterator[Allocation]:
    defined = {
        _number(buffer, _BUFFER_ID): _number(message, _INSTRUCTION)
        for buffer in _messages(assignment, _BUFFERS)
        for message in _messages(buffer, _DEFINED_AT)
    }
    alive = _alive_at_peak(assignment)
    for allocation in _messages(assignment, _ALLOCATIONS):
        slots: dict[tuple[int, int], list[int]] = {}
        for slot in _messages(allocation, _ASSIGNED):
            place = _number(slot, _SLOT_OFFSET), _number(slot, _SLOT_SIZE)
            slots.setdefault(place, []).append(_number(slot, _SLOT_BUFFER))
        kind, live = _kind(allocation), alive.get(_number(allocation, _INDEX))
        for (_, nbytes), buffers in slots.items():
            makers = [operations[defined[buffer]] for buffer in buffers]
            # An argument is its own maker. Elsewhere the first array that a line of the project makes says most.
            known = [maker for maker in makers if maker[2] or kind == "argument"]
            opcode, op_name, line = (known or makers)[0]
            yield Allocation(
                nbytes=nbytes,
                kind=kind,
                opcode=opcode,
                op_name=op_name,
                line=line,
                alive_at_peak=None if live is None else any(buffer in live for buffer in buffers),
            )


def _alive_at_peak(assignment: Message) -> dict[int, set[int]]:
    """The arrays alive when an allocation is fullest, by its index, where the compiler kept a trace of it."""
    sizes = {_number(each, _BUFFER_ID): _number(each, _BUFFER_SIZE) for each in _messages(assignment, _BUFFERS)}
    found: dict[int, set[int]] = {}
    for trace in _messages(assignment, _TRACES):
        live: dict[int, int] = {}
        best = -1
        for event in _messages(trace, _EVENTS):
            kind, buffer = _number(event, _EVENT_KIND), _number(event, _EVENT_BUFFER)
            if kind == _FREE:
                live.pop(buffer, None)
                continue
            live[buffer] = _number(event, _EVENT_SHARES) if kind == _SHARE else buffer
            total = sum(sizes.get(owner, 0) for owner in set(live.values()))  # those that share take no more
            if total > best:
                best = total
                found[_number(trace, _TRACE_OF)] = set(live)
    return found


# Protocol buffers without their schema: field number to values, in the order of the bytes.
Value = int | bytes
Message = Mapping[int, list[Value]]
_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}  # kinds of fields of fixed size, with their bytes
_DIGITS = 10  # the most of a number of 64 bits, seven bits in each


def read_message(content: bytes) -> Message:
    """Part a message into its fields.

    Raises:
        ValueError: If the bytes are no message.
    """
    fields: dict[int, list[Value]] = {}
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        if kind not in (_VARINT, _BYTES, *_FIXED):
            raise ValueError(f"it has a field of the unknown kind {kind}")
        number, place = (_FIXED[kind], place) if kind in _FIXED else _varint(content, place)
        value: Value = number
        if kind != _VARINT:  # the number is a size
            value, place = content[place : place + number], place + number
        fields.setdefault(key >> 3, []).append(value)
    if place > len(content):
        raise ValueError("it ends within a field")
    return fields


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value, digits = 0, content[place : place + _DIGITS]
    for count, digit in enumerate(digits):
        value |= (digit & 0x7F) << (7 * count)
        if digit < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return value, place + count + 1
    raise ValueError("it has a number of more than 64 bits" if len(digits) == _DIGITS else "it ends within a number")


def _number(message: Message, field: int) -> int:
    """The last number of a field; 0 if the field is absent, as the format has it."""
    value = message.get(field, [0])[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} is no number")  # noqa: TRY004 - the content is at fault
    return value


def _messages(message: Message, field: int) -> list[Message]:
    return [read_message(_content(value)) for value in message.get(field, [])]


def _content(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number stands for a message")  # noqa: TRY004 - the content is at fault
    return value
