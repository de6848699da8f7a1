"""A program of one function ``main`` without calls: what it holds, and what edits do to it.

Its inputs keep the number of their seat whatever is cut around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from math import prod
from typing import Any

from jaxgate.ext.repro.modules import array_of, bindings, main_of, parse
from jaxgate.observe.trace.stablehlo import walk

SEAT, VALUE = "jax.seat", "jax.value"
"""Attributes of an input: its seat, and the name of the value that it stands for, where it was cut."""
SHAPE = re.compile(r"tensor<((?:\d+x)+)")
"""The shape in a type of the text."""
_CONSTANT, _BARRIER, _LOOP = "stablehlo.constant", "stablehlo.optimization_barrier", "stablehlo.while"
_FREE = frozenset({_CONSTANT, "stablehlo.return", "func.return"})
"""What no count of operations speaks of."""


class FlatProgram:
    """A program that is read, and may be changed in a context of its module.

    Attributes:
        seats: The seat of each input; none where inputs are not marked.
        names: The name of each input's value.
    """

    def __init__(self, text: str) -> None:
        self.module = parse(text)  # as long as it is held its operations are there
        self.main = main_of(self.module)
        self.block = self.main.regions[0].blocks[0]
        marked = "arg_attrs" in self.main.attributes  # the bindings' map has no ``get``
        marks = [one for one in self.main.attributes["arg_attrs"] if SEAT in one] if marked else []
        self.seats = [int(one[SEAT].value) for one in marks]
        self.names = [str(one[VALUE].value) for one in marks]

    @property
    def operations(self) -> list[Any]:
        """Its operations, without those in their regions."""
        return [op.operation for op in self.block.operations]

    @property
    def count(self) -> int:
        """How many operations it has, without constants; those in the bodies of loops count, too."""
        return sum(op.name not in _FREE for op in inside(self.main))

    @property
    def outputs(self) -> int:
        """How many results it has."""
        return len(self.operations[-1].operands)

    @property
    def elements(self) -> int:
        """How many numbers it takes and computes, loops once."""
        computed = [one for op in inside(self.main) for one in op.results if str(one.type).startswith("tensor")]
        return sum(prod(array_of(one.type).shape) for one in (*self.block.arguments, *computed))

    @property
    def loops(self) -> list[Any]:
        """The loops at its top."""
        return [op for op in self.operations if op.name == _LOOP]

    @property
    def values(self) -> list[str]:
        """Names for what its operations compute, in order, each once."""
        return list(dict.fromkeys(name for value, name in self.results() if value.owner.name != _CONSTANT))

    def results(self) -> list[tuple[Any, str]]:
        """Each result of an operation with its name: what computes the same of the same inputs has one name.

        A barrier does not change what it holds back.
        """
        names: dict[Any, str] = dict(zip(self.block.arguments, self.names, strict=True))
        found = []
        for op in self.operations[:-1]:
            given = [names[one] for one in op.operands]
            captured = [names[one] for inner in inside(op) for one in inner.operands if one in names]
            for place, result in enumerate(op.results):
                if op.name == _BARRIER:
                    names[result] = given[place]
                else:
                    names[result] = _digest(op, [*given, *captured], place)
                    found.append((result, names[result]))
        return found

    def give_back(self, values: Sequence[Any]) -> None:
        """Let these be its results."""
        ir = bindings().ir
        back = self.operations[-1]
        ir.Operation.create("func.return", operands=list(values), ip=ir.InsertionPoint(back))
        back.erase()

    def finish(self) -> None:
        """Drop what nobody uses, and let the function say what it takes and gives."""
        ir = bindings().ir
        for op in reversed(self.operations[:-1]):
            if not any(list(result.uses) for result in op.results):
                op.erase()
        for place in reversed(range(len(self.block.arguments))):
            if not list(self.block.arguments[place].uses):
                self.block.erase_argument(place)
                del self.seats[place], self.names[place]
        given = [argument.type for argument in self.block.arguments]
        made = [value.type for value in self.operations[-1].operands]
        self.main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(given, made))
        for key in ("arg_attrs", "res_attrs"):
            if key in self.main.attributes:
                del self.main.attributes[key]
        whole = ir.IntegerType.get_signless(64)
        marks = [
            ir.DictAttr.get({SEAT: ir.IntegerAttr.get(whole, seat), VALUE: ir.StringAttr.get(name)})
            for seat, name in zip(self.seats, self.names, strict=True)
        ]
        if marks:
            self.main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)


def inside(operation: Any) -> list[Any]:
    """All operations in an operation's regions, to any depth."""
    return [op for _, op in walk(operation)]


def place_copies(operation: Any, block: Any) -> None:
    """Put copies of a block's operations in the place of an operation that runs it on its operands."""
    ir = bindings().ir
    known = dict(zip(block.arguments, operation.operands, strict=True))
    *ops, back = [op.operation for op in block.operations]
    for op in ops:
        copy = op.clone(ip=ir.InsertionPoint(operation))
        for one in (copy, *inside(copy)):
            for place, value in enumerate(one.operands):
                if value in known:
                    one.operands[place] = known[value]
        known |= dict(zip(op.results, copy.results, strict=True))
    for result, value in zip(operation.results, back.operands, strict=True):
        result.replace_all_uses_with(known.get(value, value))
    operation.erase()


def unmarked(text: str) -> str:
    """A program as anybody else would write it: without seats."""
    return re.sub(r" \{jax\.seat[^}]*\}", "", text)


def sizes(text: str) -> list[int]:
    """The sizes of dimensions that there are, largest first."""
    found = {int(size) for shape in SHAPE.findall(text) for size in shape.split("x") if size}
    return sorted((size for size in found if size > 1), reverse=True)


def numbers(text: str) -> list[str]:
    """Whole numbers above 1 that stand alone, as written; bounds of loops are among them."""
    return sorted({found for found in re.findall(r"dense<(\d+)> : tensor<u?i(?:32|64)>", text) if int(found) > 1})


def _digest(op: Any, given: Sequence[str], place: int) -> str:
    """What an operation computes: itself, its regions, and the values that all of these read."""
    text = re.sub(r"%[\w#:]+", "%", str(op))
    outer = "|".join(given)
    return blake2b(f"{text}|{outer}|{place}".encode(), digest_size=8).hexdigest()
