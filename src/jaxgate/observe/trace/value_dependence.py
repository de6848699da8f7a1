"""Operations of a StableHLO module whose work may depend on the values of its arguments: with none, only shapes count."""

from __future__ import annotations

import re
from typing import Any

from jaxgate.observe.trace.stablehlo import walk

_DEPENDENT = frozenset(
    {
        "stablehlo.case", "stablehlo.if", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send",
        "stablehlo.set_dimension_size", "stablehlo.sort", "chlo.ragged_dot", "chlo.top_k",
    }
)  # fmt: skip
"""Branches and waiting; sizes known at run time; comparing until all is in order; as many rows as another array says."""
_SLICES = frozenset({"stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"})
"""Dynamic in where they begin alone. All other dynamic operations have a size that values decide."""
_DIALECTS = ("builtin", "chlo", "func", "sdy", "stablehlo")
_PLACEMENT = re.compile(r"Sharding|SPMD\w+|annotate_device_placement|LayoutConstraint|mhlo\.erf")
"""Custom calls without work of their own, or with one step for each number. Solvers of LAPACK may iterate."""


def value_dependent(module: Any) -> tuple[str, ...]:
    """Name the operations of a module whose work may depend on values; a loop of constant length does not.

    What is not known to be independent is dependent. That denormal numbers, and indices far apart in memory, take some
    processors longer is not counted as work.

    Args:
        module: As ``lowered.compiler_ir("stablehlo")`` gives it.
    """
    return tuple(sorted({name for _, operation in walk(module.operation) if (name := _dependent(operation))}))


def _dependent(operation: Any) -> str:
    name = str(operation.name)
    if name == "stablehlo.while":
        return "" if _has_constant_length(operation) else name
    if name == "stablehlo.custom_call":
        target = operation.attributes["call_target_name"].value
        return "" if _PLACEMENT.fullmatch(target) else f"{name} @{target}"
    dialect, _, kind = name.partition(".")
    dynamic = kind.startswith(("dynamic_", "real_dynamic_")) and name not in _SLICES
    return name if dialect not in _DIALECTS or name in _DEPENDENT or dynamic else ""


def _has_constant_length(loop: Any) -> bool:
    """Whether a loop counts from a constant, by a constant, up to a constant, as ``scan`` and ``fori_loop`` do."""
    condition, body = (region.blocks[0] for region in loop.regions)
    (decision,) = _last(condition).operands
    test = _operation(decision)
    if test is None or test.name != "stablehlo.compare":
        return False
    carried = {argument: place for place, argument in enumerate(condition.arguments)}
    sides = [_Carried(loop, body, carried[side]) if side in carried else side for side in test.operands]
    counters = [side for side in sides if isinstance(side, _Carried)]
    bounds = [side for side in sides if not isinstance(side, _Carried)]
    if not counters or not all(_is_constant(bound) for bound in bounds):
        return False
    return all(counter.is_counted() for counter in counters)


class _Carried:
    """A value that a loop carries, by its place."""

    def __init__(self, loop: Any, body: Any, place: int) -> None:
        self._start, self._inside, self._next = loop.operands[place], body.arguments[place], _last(body).operands[place]

    def is_counted(self) -> bool:
        """Whether it starts at a constant, and stays as it is or moves by a constant at each turn."""
        if not _is_constant(self._start):
            return False
        if self._next == self._inside:
            return True
        step = _operation(self._next)
        if step is None or step.name not in ("stablehlo.add", "stablehlo.subtract"):
            return False
        first, second = step.operands
        return (first == self._inside and _is_constant(second)) or (
            step.name == "stablehlo.add" and second == self._inside and _is_constant(first)
        )


def _last(block: Any) -> Any:
    return block.operations[len(block.operations) - 1].operation


def _operation(value: Any) -> Any:
    """What makes a value; ``None`` of an argument of a block."""
    return getattr(value.owner, "operation", value.owner if hasattr(value.owner, "name") else None)


def _is_constant(value: Any) -> bool:
    made_by = _operation(value)
    return made_by is not None and made_by.name == "stablehlo.constant"
