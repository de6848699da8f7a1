"""What a device runs one after the other in a call of a compiled program, which of it only copies, and which jumps.

A copy is an operation of the optimised program that moves an array and computes nothing: a copy, a transpose, a reshape that
is no view, or a fusion of nothing else. A transfer between two memories (a prefetch, an offload) is none.

A gather or scatter jumps if its indices choose single elements along the axis whose elements lie side by side in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from jaxgate.model.measurement import APART
from jaxgate.observe.hlo.parser import HloText, Instruction, is_opaque, is_product, target_of
from jaxgate.observe.hlo.shapes import Shape
from jaxgate.observe.hlo.totals import (
    CONTROL,
    FREE,
    VIEWS,
    Amounts,
    Siblings,
    add_up,
    called,
    computation_of,
    root_of,
    why_unread,
)

_COPIES = frozenset({"copy", "copy-start", "reshape", "transpose"})
_BYTES = "copied bytes"
_APART = "scattered bytes"
_INDEXED = {"gather": "start_index_map", "scatter": "scatter_dims_to_operand_dims"}
"""Which axes the indices of an operation choose along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The operations that one call starts, loops as often as they run."""

    counts: Mapping[str, int] = field(default_factory=dict)  # `copy float32[64,64]`, `fused add`, `dot`
    copied_bytes: int | None = None  # what the copies write; `None` if the program could not be read
    scattered_bytes: int | None = None  # what gathers and scatters that jump move; `None` if unread
    lines: Mapping[str, str] = field(default_factory=dict)  # operations that copy or jump, to source lines
    unread: str = ""  # why it is unknown; empty if it is known

    @property
    def facts(self) -> dict[str, int | None]:
        """The facts, by name."""
        return {
            "kernels": None if self.copied_bytes is None else sum(self.counts.values()),
            "copied_bytes": self.copied_bytes,
            "scattered_bytes": self.scattered_bytes,
        }

    @property
    def unknown(self) -> dict[str, str]:
        """The facts that are unknown, each with the reason."""
        return dict.fromkeys(self.facts, self.unread) if self.unread else {}


def read_kernels(hlo: HloText) -> Kernels:
    """Count what one call starts on one device: a loop of unknown length once, of a condition the dearest branch."""
    unread = why_unread(hlo)
    if unread:
        return Kernels(unread=unread)
    found = add_up(hlo, partial(_own, hlo), CONTROL, dearest=True)
    copied, apart = found.counts.pop(_BYTES, 0), found.counts.pop(_APART, 0)
    return Kernels(
        counts=dict(sorted(found.counts.items())), copied_bytes=copied, scattered_bytes=apart, lines=_lines(hlo)
    )


def _own(hlo: HloText, instruction: Instruction, siblings: Siblings) -> Amounts:
    opcode = instruction.opcode
    if opcode in FREE or opcode.endswith(("-done", "-update")):
        return Amounts()
    if opcode == "custom-call" and not (is_opaque(instruction) or is_product(instruction)):
        return Amounts()
    jumps = _jumps(instruction, siblings, hlo)
    label = max(jumps, key=jumps.__getitem__) if jumps else _label(instruction, siblings, hlo)
    copied = instruction.shapes[0].nbytes if label.startswith("copy ") else 0
    return Amounts(Counter({label: 1, _BYTES: copied, _APART: jumps.total()}))


def _label(instruction: Instruction, siblings: Siblings, hlo: HloText) -> str:
    if _copies(instruction, siblings, hlo):
        return f"copy {instruction.shapes[0].label}"
    if instruction.opcode == "fusion":
        root = root_of(computation_of(instruction, hlo))
        return f"fused {root.opcode}" if root else "fusion"
    return target_of(instruction) or instruction.opcode


def _jumps(instruction: Instruction, siblings: Siblings, hlo: HloText) -> Counter[str]:
    """Where an operation, or those within a fusion, gather or scatter with jumps, and the bytes of each."""
    inside = computation_of(instruction, hlo) if instruction.opcode == "fusion" else siblings
    found: Counter[str] = Counter()
    for one in inside.values() if instruction.opcode == "fusion" else (instruction,):
        if one.opcode not in _INDEXED:
            continue
        arrays = [inside[name].shapes[0] for name in one.operands if name in inside and inside[name].shapes]
        axis = arrays[0].fastest if arrays else None
        if axis is not None and axis in _axes(one, _INDEXED[one.opcode]) and arrays[0].dims[axis] > 1:
            # A scatter's updates stand last.
            moved = one.shapes if one.opcode == "gather" else arrays[-len(one.shapes) :]
            if _chosen(one, arrays[0], moved[0], axis) == 1:
                found[f"{one.opcode}{APART}{arrays[0].label}"] += sum(shape.nbytes for shape in moved)
    return found


def _axes(instruction: Instruction, name: str) -> list[int]:
    written = re.search(rf"\b{name}=\{{([0-9,]+)\}}", instruction.attributes)
    return [int(axis) for axis in written[1].split(",")] if written else []


def _chosen(instruction: Instruction, array: Shape, moved: Shape, axis: int) -> int:
    """How many elements one index chooses along an axis of an array."""
    if instruction.opcode == "gather":
        return _axes(instruction, "slice_sizes")[axis]
    single = {*_axes(instruction, "inserted_window_dims"), *_axes(instruction, "input_batching_dims")}
    windows = [other for other in range(len(array.dims)) if other not in single]
    return 1 if axis in single else moved.dims[_axes(instruction, "update_window_dims")[windows.index(axis)]]


def _copies(instruction: Instruction, siblings: Siblings, hlo: HloText) -> bool:
    """Whether an operation moves one array within one memory, and does nothing else."""
    if not instruction.shapes or not instruction.operands:
        return False
    if instruction.opcode == "fusion":
        inside = {one.opcode for one in computation_of(instruction, hlo).values()} - VIEWS - {"parameter"}
        return bool(inside) and inside <= _COPIES and len(instruction.shapes) == 1
    source = siblings.get(instruction.operands[0])
    spaces = {shape.space for shape in source.shapes} if source else set()
    return instruction.opcode in _COPIES and spaces == {instruction.shapes[0].space}


def _lines(hlo: HloText) -> dict[str, str]:
    """A source line of each kind of copy: its own, that of what it copies, or that of the loop that it stands in.

    Operations that jump have a line of each kind, too.
    """
    loops = {
        body: loop.line
        for siblings in hlo.computations.values()
        for loop in siblings.values()
        if loop.opcode == "while"
        for body, _ in called(loop, siblings, hlo)
    }
    found: dict[str, str] = {}
    for name, siblings in hlo.computations.items():
        for instruction in siblings.values():
            for label in _jumps(instruction, siblings, hlo) if instruction.line else ():
                found.setdefault(label, instruction.line)
            if instruction.opcode != "parameter" and _copies(instruction, siblings, hlo):
                line = instruction.line or siblings[instruction.operands[0]].line or loops.get(name, "")
                if line:
                    found.setdefault(f"copy {instruction.shapes[0].label}", line)
    return found
