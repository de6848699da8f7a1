"""Operations that write where they read: views, updates of a part, and elementwise work."""

from __future__ import annotations

import re

from jaxgate.observe.hlo.parser import HloText, Instruction, without_strings
from jaxgate.observe.hlo.traffic import computation_of

SAME = frozenset({"add-dependency", "bitcast", "domain", "opt-barrier"})
"""Operations whose result is their first operand."""
_TAKES = re.compile(r"\{([0-9]{0,9})\}: \(([0-9]{1,9}), \{\}")
_UPDATES = frozenset({"dynamic-update-slice", "scatter"})
_IN_PLACE = frozenset({"add", "all-reduce", "convert", "multiply", "select", "sort", "subtract", "tanh"})


def works_in_place(instruction: Instruction) -> bool:
    """Whether an operation may write where it reads: one number of the result for each of an operand."""
    return instruction.opcode in _IN_PLACE or (
        instruction.opcode == "fusion" and "kind=kLoop" in instruction.attributes
    )


def replaced(instruction: Instruction, hlo: HloText) -> dict[int, str]:
    """Which results of an operation take the place of which operands: a part of these is replaced."""
    if instruction.opcode in _UPDATES:
        return {0: instruction.operands[0]}
    found = {
        int(place or 0): instruction.operands[int(operand)]
        for place, operand in _TAKES.findall(without_strings(instruction.attributes))
        if int(operand) < len(instruction.operands)
    }
    if instruction.opcode != "fusion":
        return found
    inside = computation_of(instruction, hlo)
    root = next((i for i in inside.values() if i.root), None)
    makers = () if root is None else root.operands if root.opcode == "tuple" else (root.name,)
    for place, maker in enumerate(makers):
        name: str | None = maker
        updated = False
        while name is not None and inside[name].opcode != "parameter":
            made = inside[name]
            name = made.operands[0] if made.opcode in SAME and made.operands else replaced(made, hlo).get(0)
            updated = updated or made.opcode not in SAME
        number = int(inside[name].arguments) if name is not None else len(instruction.operands)
        if updated and number < len(instruction.operands):
            found[place] = instruction.operands[number]
    return found
