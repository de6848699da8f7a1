"""Smaller programs out of one: what is cut at a value, returns less, loops less, or has smaller arrays.

Each edit gives the text of another flat program, or ``None`` where that is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from jaxgate.ext.repro.flat import SHAPE, FlatProgram, inside, place_copies
from jaxgate.ext.repro.modules import bindings, context, parse, text_of

P = ParamSpec("P")
_SPREAD = re.compile(r"(%\w+) = stablehlo\.broadcast_in_dim (%\w+), dims = \[\] : \(tensor<\w+>\) -> (tensor<[^>]+>)")


def prepared(text: str, seats: Sequence[int]) -> str:
    """A program without calls, its inputs marked with their seats."""
    module = parse(text)
    functions = {op.attributes["sym_name"].value: op.operation for op in module.body.operations if _is_function(op)}
    main = functions.pop("main")
    with context(), bindings().ir.Location.unknown():
        while calls := [op for op in inside(main) if op.name == "func.call"]:
            for call in calls:
                place_copies(call, functions[call.attributes["callee"].value].regions[0].blocks[0])
        for name, function in functions.items():
            if f"@{name}" not in str(main):
                function.erase()
        program = FlatProgram(text_of(module))
        program.seats, program.names = list(seats), [f"seat {seat}" for seat in seats]
        program.finish()
    return text_of(program.module)


def _is_function(op: Any) -> bool:
    return bool(op.operation.name == "func.func")


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
    return getattr(value.owner, "name", "") == "stablehlo.constant"


@_edit
def without_loop(program: FlatProgram, number: int) -> bool:
    """Let the body of a loop be done once."""
    loop = program.loops[number]
    place_copies(loop, loop.regions[1].blocks[0])
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
