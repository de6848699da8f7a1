"""The source line of an instruction that has none of its own: that of its nearest neighbour in the flow of data."""

from __future__ import annotations

from collections.abc import Mapping

from jaxgate.observe.hlo.parser import Instruction

_STEPS = 4
"""Instructions on the way: a partitioner puts copies, slices and concatenations around what it inserts."""


def line_near(instruction: Instruction, siblings: Mapping[str, Instruction]) -> str:
    """Its own line, else the line of the nearest instruction that it reads or that reads it.

    Args:
        instruction: Any instruction.
        siblings: All of its computation, by name.

    Returns:
        ``file:line`` of the project; empty if none is near.
    """
    if instruction.line:
        return instruction.line
    seen, front = {instruction.name}, [instruction]
    for _ in range(_STEPS):
        names = [name for one in front for name in one.operands]
        names += [name for name, other in siblings.items() if any(one.name in other.operands for one in front)]
        front = [siblings[name] for name in dict.fromkeys(names) if name in siblings and name not in seen]
        found = next((one.line for one in front if one.line), "")
        if found or not front:
            return found
        seen.update(one.name for one in front)
    return ""
