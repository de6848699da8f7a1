"""Programs of one function ``main`` without calls: what they hold, and smaller ones out of one.

A program is cut at a value, returns less, loops less, or has smaller arrays: each edit gives the text of another one, or
``None`` where that is none. Inputs keep the number of their seat whatever is cut around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from hashlib import blake2b
from math import prod
from typing import Any, Concatenate, ParamSpec

from jaxgate.ext.repro.modules import array_of, bindings, context, main_of, parse, text_of
from jaxgate.observe.trace.stablehlo import walk

P = ParamSpec("P")
SEAT, VALUE = "jax.seat", "jax.value"
"""Attributes of an input: its seat, and the name of the value that it stands for, where it was cut."""
SHAPE = re.compile(r"tensor<((?:\d+x)+)")
"""The shape in a type of the text."""
_CONSTANT, _BARRIER, _LOOP = "stablehlo.constant", "stablehlo.optimization_barrier", "stablehlo.while"
_FREE = frozenset({_CONSTANT, "stablehlo.return", "func.return"})
"""What no count of operations speaks of."""
_SPREAD = re.compile(r"(%\w+) = stablehlo\.broadcast_in_dim (%\w+), dims = \[\] : \(tensor<\w+>\) -> (tensor<[^>]+>)")


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


def _place_copies(operation: Any, block: Any) -> None:
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
    """Whole numbers above 1 that stand alone, as written, largest first; bounds of loops are among them."""
    found = {one for one in re.findall(r"dense<(\d+)> : tensor<u?i(?:32|64)>", text) if int(one) > 1}
    return sorted(found, key=int, reverse=True)


def _digest(op: Any, given: Sequence[str], place: int) -> str:
    """What an operation computes: itself, its regions, and the values that all of these read."""
    text = re.sub(r"%[\w#:]+", "%", str(op))
    outer = "|".join(given)
    return blake2b(f"{text}|{outer}|{place}".encode(), digest_size=8).hexdigest()


def prepared(text: str, seats: Sequence[int]) -> str:
    """A program without calls, its inputs marked with their seats."""
    module = parse(text)
    functions = {
        op.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    main = functions.pop("main")
    with context(), bindings().ir.Location.unknown():
        while calls := [op for op in inside(main) if op.name == "func.call"]:
            for call in calls:
                _place_copies(call, functions[call.attributes["callee"].value].regions[0].blocks[0])
        for name, function in functions.items():
            if f"@{name}" not in str(main):
                function.erase()
        program = FlatProgram(text_of(module))
        program.seats, program.names = list(seats), [f"seat {seat}" for seat in seats]
        program.finish()
    return text_of(program.module)


def _edit(change: Callable[Concatenate[FlatProgram, P], bool]) -> Callable[Concatenate[str, P], str | None]:
    """Let a change of a program, which says whether it can be made, be one of its text; MLIR verifies what comes of it."""

    @wraps(change)
    def edit(text: str, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        ir = bindings().ir
        try:
            program = FlatProgram(text)
            with context(), ir.Location.unknown():
                if not change(program, *args, **kwargs):
                    return None
                program.finish()
            program.module.operation.verify()
        except ir.MLIRError:
            return None
        return text_of(program.module)

    return edit


@_edit
def taking(program: FlatProgram, seats: Mapping[str, int]) -> bool:
    """Let some values be inputs, each with its seat; no input is returned as it is where anything else is."""
    named = program.results()
    for name, seat in seats.items():
        same = [value for value, other in named if other == name]
        if not same or any(value.type != same[0].type for value in same):
            return False
        argument = program.block.add_argument(same[0].type, bindings().ir.Location.unknown())
        program.seats.append(seat)
        program.names.append(name)
        for value in same:
            value.replace_all_uses_with(argument)
    inputs = set(program.block.arguments)
    if computed := [one for one in program.operations[-1].operands if one not in inputs]:
        program.give_back(computed)
    return True


@_edit
def returning(program: FlatProgram, output: str) -> bool:
    """Let one value be the only result."""
    chosen = [value for value, name in program.results() if name == output][:1]
    if chosen:
        program.give_back(chosen)
    return bool(chosen)


@_edit
def keeping(program: FlatProgram, kept: Collection[int]) -> bool:
    """Keep some of the results, by their numbers."""
    program.give_back([one for place, one in enumerate(program.operations[-1].operands) if place in kept])
    return True


@_edit
def bypassed(program: FlatProgram, names: Collection[str]) -> bool:
    """Let values of some names be what they were computed from, where an operand has their type."""
    done = False
    for value, name in program.results():
        like = [one for one in value.owner.operands if one.type == value.type and not _is_constant(one)]
        if name in names and like:
            value.replace_all_uses_with(like[0])
            done = True
    return done


def _is_constant(value: Any) -> bool:
    return getattr(value.owner, "name", "") == _CONSTANT


@_edit
def without_loop(program: FlatProgram, number: int) -> bool:
    """Let the body of a loop be done once."""
    loop = program.loops[number]
    _place_copies(loop, loop.regions[1].blocks[0])
    return True


@_edit
def _tidied(_: FlatProgram) -> bool:
    """Let a text that was changed be a program again."""
    return True


def folded(text: str) -> str | None:
    """Let each constant that is only spread over a shape be a constant of that shape."""
    known = dict(re.findall(r"(%\w+) = stablehlo\.constant (dense<[^\[>\"]*>) : tensor<\w+>", text))

    def spread(found: re.Match[str]) -> str:
        result, operand, kind = found.groups()
        return f"{result} = stablehlo.constant {known[operand]} : {kind}" if operand in known else found[0]

    return _tidied(_SPREAD.sub(spread, text))


def resized(text: str, size: int, other: int) -> str | None:
    """Let every dimension of a size have another one; an operation may have the size elsewhere, too, and allow none."""

    def shape(found: re.Match[str]) -> str:
        parts = [str(other) if part == str(size) else part for part in found[1].split("x")]
        return f"tensor<{'x'.join(parts)}"

    return _tidied(SHAPE.sub(shape, text))


def renumbered(text: str, number: str, other: int) -> str | None:
    """Let a whole number be another one."""
    return _tidied(re.sub(rf"dense<{number}>( : tensor<u?i(?:32|64)>)", rf"dense<{other}>\1", text))
