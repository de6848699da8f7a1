"""Bytes that a compiled program reads from a device's memory and writes to it.

Each operation reads its operands and writes its results once; a fusion is one operation. What lies in another memory
(VMEM of a TPU) is no traffic, and of what an operation only takes or replaces a part of, that part counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from jaxgate.observe.hlo.custom_calls import is_opaque, is_product, target_of
from jaxgate.observe.hlo.parser import HloText, Instruction
from jaxgate.observe.hlo.shapes import Shape
from jaxgate.observe.hlo.totals import CONTROL, Amounts, Siblings, add_up

_VIEWS = frozenset({"bitcast", "get-tuple-element", "tuple"})
_FREE = _VIEWS | CONTROL
_FREE |= {"add-dependency", "after-all", "constant", "domain", "opt-barrier", "parameter", "partition-id", "replica-id"}
_SLICES = frozenset({"dynamic-slice", "gather", "slice"})
"""What takes a part of its first operand."""
_UPDATES: Mapping[str, int] = {"dynamic-update-slice": 1, "scatter": 2}
"""What replaces a part of its first operand where it lies, with the place of the operand that says which part."""
BYTES = "bytes"


def count_traffic(hlo: HloText) -> Amounts:
    """Count the bytes that one call moves from and to the memory of one device, under the name ``bytes``."""
    return add_up(hlo, _Traffic(hlo).own, CONTROL)


def in_memory(shapes: tuple[Shape, ...]) -> int:
    """Bytes of arrays in the device's own memory, with their padding."""
    return sum(shape.tiled_bytes for shape in shapes if shape.space == 0)


class _Traffic:
    def __init__(self, hlo: HloText) -> None:
        self._hlo = hlo

    def own(self, instruction: Instruction, siblings: Siblings) -> Amounts:
        """What one operation reads and writes."""
        opcode = instruction.opcode
        if is_opaque(instruction):
            return Amounts(more={f"{target_of(instruction)} is opaque": None})
        if opcode in _FREE or (opcode == "custom-call" and not is_product(instruction)):
            return Amounts()
        if opcode == "async-update":  # it goes on with what was started
            return Amounts()
        if opcode.endswith("-start"):
            sliced = opcode.removesuffix("-start") in _SLICES
            return _moved(0 if sliced else self._read(instruction, siblings))
        if opcode.endswith("-done"):
            started = siblings.get(instruction.operands[0]) if instruction.operands else None
            sliced = started is not None and started.opcode.removesuffix("-start") in _SLICES
            read = sum(shape.tiled_bytes for shape in instruction.shapes) if sliced else 0
            return _moved(read + (0 if opcode == "async-done" else in_memory(instruction.shapes)))
        if opcode == "fusion":
            inside = self._inside(instruction)
            return _moved(self._read(instruction, siblings, inside) + _written(instruction, inside, self._hlo))
        if is_product(instruction):
            return _moved(self._read(instruction, siblings) + in_memory(instruction.shapes[:1]))
        return _moved(self._read(instruction, siblings) + _result(instruction, siblings))

    def _inside(self, fusion: Instruction) -> Siblings:
        return computation_of(fusion, self._hlo)

    def _read(self, instruction: Instruction, siblings: Siblings, inside: Siblings | None = None) -> int:
        """What an operation reads of its operands, each once."""
        total = 0
        for place, name in enumerate(instruction.operands):
            if name in instruction.operands[:place]:
                continue
            whole = in_memory(siblings[name].shapes)
            places = [index for index, other in enumerate(instruction.operands) if other == name]
            if inside is not None:
                total += min(whole, sum(self._part(_parameter(inside, index), inside, whole) for index in places))
            else:
                total += min(whole, sum(_taken(instruction, index, whole) for index in places))
        return total

    def _part(self, value: Instruction | None, inside: Siblings, whole: int) -> int:
        """What a fused computation reads of a value: all of it, or what is sliced from it."""
        if value is None:
            return whole
        total = 0
        for user in inside.values():
            for place, name in enumerate(user.operands):
                if name != value.name:
                    continue
                if user.opcode in ("bitcast", "copy") and not user.root:
                    total += self._part(user, inside, whole)
                elif user.opcode == "fusion":
                    inner = self._inside(user)
                    total += self._part(_parameter(inner, place), inner, whole)
                else:
                    total += _taken(user, place, whole)
        return min(total, whole)


def computation_of(fusion: Instruction, hlo: HloText) -> Siblings:
    """The computation that a fusion runs; empty if it is not there."""
    _, _, rest = fusion.attributes.partition("calls=%")
    name = rest.split(",")[0].split(" ")[0].split("}")[0]
    return hlo.computations.get(name, {})


def _parameter(inside: Siblings, number: int) -> Instruction | None:
    return next((i for i in inside.values() if i.opcode == "parameter" and i.arguments == str(number)), None)


def _taken(user: Instruction, place: int, whole: int) -> int:
    """What an operation reads of the operand at a place."""
    if place == 0 and user.opcode in _SLICES:
        return sum(shape.tiled_bytes for shape in user.shapes)
    return 0 if place == 0 and user.opcode in _UPDATES else whole


def _result(instruction: Instruction, siblings: Siblings) -> int:
    """What an operation writes: of an update in place the part alone."""
    place = _UPDATES.get(instruction.opcode)
    if place is None or place >= len(instruction.operands):
        return in_memory(instruction.shapes)
    part = sum(shape.tiled_bytes for shape in siblings[instruction.operands[place]].shapes)
    return min(part, in_memory(instruction.shapes))


def _written(fusion: Instruction, inside: Siblings, hlo: HloText) -> int:
    """What a fusion writes."""
    root = next((i for i in inside.values() if i.root), None)
    if root is None:
        return in_memory(fusion.shapes)
    makers = [inside[name] for name in root.operands] if root.opcode == "tuple" else [root]
    if len(makers) != len(fusion.shapes):
        return in_memory(fusion.shapes)
    pairs = zip(makers, fusion.shapes, strict=True)
    return sum(min(in_memory((shape,)), _made(maker, inside, hlo, shape)) for maker, shape in pairs)


def _made(maker: Instruction, inside: Siblings, hlo: HloText, shape: Shape) -> int:
    """What is new of a fusion's result: all of it, or what is replaced in an operand."""
    for step in _back(maker, inside):
        place = _UPDATES.get(step.opcode)
        if place is not None and place < len(step.operands):
            return sum(part.tiled_bytes for part in inside[step.operands[place]].shapes)
        if step.opcode == "fusion" and len(step.shapes) == 1:
            return _written(step, computation_of(step, hlo), hlo)
    return shape.tiled_bytes


def _back(value: Instruction, inside: Siblings) -> Iterator[Instruction]:
    """A value, and what it is a view of."""
    yield value
    while value.opcode == "bitcast" and value.operands and value.operands[0] in inside:
        value = inside[value.operands[0]]
        yield value


def _moved(nbytes: int) -> Amounts:
    return Amounts(Counter({BYTES: nbytes})) if nbytes else Amounts()
