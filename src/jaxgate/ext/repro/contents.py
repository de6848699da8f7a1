"""What a reduced program holds: its operations, the names of their values, its inputs' seats, its sizes and numbers.

A program is text with one function ``main`` and no calls, as ``edit.py`` makes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from math import prod
from typing import Any

from jaxgate.ext.repro.modules import array_of, main_of, parse

SEAT, VALUE = "jax.seat", "jax.value"
"""Attributes of an input: its seat, and the name of the value that it stands for, where it was cut."""
_FREE = frozenset({"stablehlo.constant", "stablehlo.return", "func.return"})
"""What no count of operations speaks of."""
SHAPE = re.compile(r"tensor<((?:\d+x)+)")
"""The shape in a type of the text."""
_BARRIER = "stablehlo.optimization_barrier"


def seats_of(text: str) -> list[int]:
    """The seats of a program's inputs."""
    module = parse(text)  # as long as it is held its operations are there
    return input_seats(main_of(module))


def count(text: str) -> int:
    """How many operations a program has, without constants; those in the bodies of loops count, too."""
    module = parse(text)
    return sum(op.name not in _FREE for op in inside(main_of(module)))


def values(text: str) -> list[str]:
    """Names for the results of a program's operations, in order: what computes the same of the same inputs has one name.

    A barrier does not change what it holds back.
    """
    module = parse(text)
    main = main_of(module)
    found = named_results(main, top_operations(main))
    return list(dict.fromkeys(name for value, name in found if value.owner.name != "stablehlo.constant"))


def unmarked(text: str) -> str:
    """A program as anybody else would write it: without seats."""
    return re.sub(r" \{jax\.seat[^}]*\}", "", text)


def elements(text: str) -> int:
    """How many numbers a program takes and computes, loops once."""
    module = parse(text)
    main = main_of(module)
    found = sum(prod(array_of(one.type).shape) for one in main.regions[0].blocks[0].arguments)
    for op in inside(main):
        found += sum(prod(array_of(one.type).shape) for one in op.results if str(one.type).startswith("tensor"))
    return found


def outputs_of(text: str) -> int:
    """How many results a program has."""
    module = parse(text)
    return len(top_operations(main_of(module))[-1].operands)


def loops(text: str) -> int:
    """How many loops a program has at its top."""
    module = parse(text)
    return sum(op.name == "stablehlo.while" for op in top_operations(main_of(module)))


def sizes(text: str) -> list[int]:
    """The sizes of dimensions that there are, largest first."""
    found = {int(size) for shape in SHAPE.findall(text) for size in shape.split("x") if size}
    return sorted((size for size in found if size > 1), reverse=True)


def numbers(text: str) -> list[str]:
    """Whole numbers above 1 that stand alone, as written; bounds of loops are among them."""
    return sorted({found for found in re.findall(r"dense<(\d+)> : tensor<u?i(?:32|64)>", text) if int(found) > 1})


def inside(operation: Any) -> Iterator[Any]:
    """All operations in an operation's regions, to any depth."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from inside(inner.operation)


def top_operations(main: Any) -> list[Any]:
    """The operations of a function, without those in their regions."""
    return [op.operation for op in main.regions[0].blocks[0].operations]


def input_seats(main: Any) -> list[int]:
    """The seat of each input; none where inputs are not marked."""
    return [int(one[SEAT].value) for one in _marks(main)]


def input_names(main: Any) -> list[str]:
    """The name of each input's value; none where they are not marked."""
    return [str(one[VALUE].value) for one in _marks(main)]


def _marks(main: Any) -> Sequence[Any]:
    if "arg_attrs" not in main.attributes:  # the bindings' map has no ``get``
        return ()
    return list(main.attributes["arg_attrs"])


def named_results(main: Any, ops: Sequence[Any]) -> list[tuple[Any, str]]:
    """Each result of an operation with its name."""
    names: dict[Any, str] = dict(zip(main.regions[0].blocks[0].arguments, input_names(main), strict=True))
    found = []
    for op in ops[:-1]:
        given = [names[one] for one in op.operands]
        captured = [names[one] for inner in inside(op) for one in inner.operands if one in names]
        for place, result in enumerate(op.results):
            names[result] = given[place] if op.name == _BARRIER else _digest(op, [*given, *captured], place)
            if op.name != _BARRIER:
                found.append((result, names[result]))
    return found


def _digest(op: Any, given: Sequence[str], place: int) -> str:
    """What an operation computes: itself, its regions, and the values that all of these read."""
    text = re.sub(r"%[\w#:]+", "%", str(op))
    outer = "|".join(given)
    return blake2b(f"{text}|{outer}|{place}".encode(), digest_size=8).hexdigest()
