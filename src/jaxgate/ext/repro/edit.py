"""Smaller programs out of one: what is cut at a value, returns less, loops less, or has smaller arrays.

A program is text with one function ``main`` and no calls. Each edit gives the text of another one that MLIR's verifier
accepts, or ``None``. Inputs keep the number of their seat (``jax.seat``) whatever is cut around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from jaxgate.ext.repro.contents import (
    SEAT,
    SHAPE,
    VALUE,
    input_names,
    input_seats,
    inside,
    named_results,
    top_operations,
)
from jaxgate.ext.repro.modules import bindings, context, main_of, parse, text_of

_SPREAD = re.compile(r"(%\w+) = stablehlo\.broadcast_in_dim (%\w+), dims = \[\] : \(tensor<\w+>\) -> (tensor<[^>]+>)")


def prepared(text: str, seats: Sequence[int]) -> str:
    """A program without calls, its inputs marked with their seats."""
    module = parse(text)
    with context(), bindings().ir.Location.unknown():
        _inline_all(module)
        _finish(module, list(seats))
    return text_of(module)


def cut(
    text: str, *, inputs: Collection[str] = (), output: str | None = None, kept: Collection[int] | None = None,
    seats: dict[str, int] | None = None,
) -> str | None:  # fmt: skip
    """Let some values be inputs, or one value the only result, or keep some of the results, by their numbers.

    ``seats`` gives the seat that each new input gets.
    """
    module = parse(text)
    main = main_of(module)
    block = main.regions[0].blocks[0]
    with context(), bindings().ir.Location.unknown() as location:
        places = input_seats(main)
        ops = top_operations(main)
        named = named_results(main, ops)
        back = ops[-1]
        if output is not None:
            chosen = [value for value, name in named if name == output][:1]
            if not chosen:
                return None
            _return(back, chosen)
        elif kept is not None:
            _return(back, [one for place, one in enumerate(back.operands) if place in kept])
        named_inputs = input_names(main)
        for name in inputs:
            same = [value for value, other in named if other == name]
            if not same or any(value.type != same[0].type for value in same):
                return None
            argument = block.add_argument(same[0].type, location)
            places.append((seats or {})[name])
            named_inputs.append(name)
            for value in same:
                value.replace_all_uses_with(argument)
        if inputs:
            _return_computed(top_operations(main)[-1], block)
        _finish(module, places, named_inputs)
    return _verified(module)


def bypassed(text: str, names: Collection[str]) -> str | None:
    """Let values of some names be what they were computed from, where an operand has their type."""
    module = parse(text)
    main = main_of(module)
    with context(), bindings().ir.Location.unknown():
        places = input_seats(main)
        done = False
        for value, name in named_results(main, top_operations(main)):
            owner = value.owner
            like = [one for one in owner.operands if one.type == value.type and not _is_constant(one)]
            if name in names and like:
                value.replace_all_uses_with(like[0])
                done = True
        if not done:
            return None
        _finish(module, places)
    return _verified(module)


def folded(text: str) -> str | None:
    """Let a constant that is only spread over a shape be a constant of that shape; ``None`` where there is none."""
    changed = _SPREAD.sub(_spread_constant(text), text)
    if changed == text:
        return None
    module = parse(changed)
    with context(), bindings().ir.Location.unknown():
        _finish(module, input_seats(main_of(module)))
    return _verified(module)


def _spread_constant(text: str) -> Callable[[re.Match[str]], str]:
    known = dict(re.findall(r"(%\w+) = stablehlo\.constant (dense<[^\[>\"]*>) : tensor<\w+>", text))

    def spread(found: re.Match[str]) -> str:
        result, operand, kind = found.groups()
        return f"{result} = stablehlo.constant {known[operand]} : {kind}" if operand in known else found[0]

    return spread


def without_loop(text: str, number: int) -> str | None:
    """Let the body of a loop be done once."""
    module = parse(text)
    main = main_of(module)
    with context(), bindings().ir.Location.unknown():
        places = input_seats(main)
        loop = [op for op in top_operations(main) if op.name == "stablehlo.while"][number]
        _place(loop, loop.regions[1].blocks[0], list(loop.operands))
        _finish(module, places)
    return _verified(module)


def resized(text: str, size: int, other: int) -> str | None:
    """Let every dimension of a size have another one; ``None`` where an operation does not allow it."""

    def shape(found: re.Match[str]) -> str:
        parts = [str(other) if part == str(size) else part for part in found[1].split("x")]
        return f"tensor<{'x'.join(parts)}"

    try:
        return _verified(parse(SHAPE.sub(shape, text)))
    except Exception:  # noqa: BLE001 - the parser's own: an operation has this size elsewhere, too
        return None


def renumbered(text: str, number: str, other: int) -> str | None:
    """Let a whole number be another one."""
    changed = re.sub(rf"dense<{number}>( : tensor<u?i(?:32|64)>)", rf"dense<{other}>\1", text)
    return _verified(parse(changed))


def _return_computed(back: Any, block: Any) -> None:
    """Return no input as it is, where anything else is returned."""
    given = set(block.arguments)
    computed = [one for one in back.operands if one not in given]
    if computed and len(computed) < len(back.operands):
        _return(back, computed)


def _is_constant(value: Any) -> bool:
    return getattr(value.owner, "name", "") == "stablehlo.constant"


def _return(back: Any, chosen: Sequence[Any]) -> None:
    ir = bindings().ir
    ir.Operation.create("func.return", operands=list(chosen), ip=ir.InsertionPoint(back))
    back.erase()


def _inline_all(module: Any) -> None:
    functions = {
        op.operation.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    while calls := [op for op in inside(functions["main"]) if op.name == "func.call"]:
        for call in calls:
            called = functions[call.attributes["callee"].value]
            _place(call, called.regions[0].blocks[0], list(call.operands))
    for name, function in functions.items():
        if name != "main" and f"@{name}" not in str(functions["main"]):
            function.erase()


def _place(operation: Any, block: Any, given: Sequence[Any]) -> None:
    """Put copies of a block's operations in the place of an operation that runs it."""
    ir = bindings().ir
    known = dict(zip(block.arguments, given, strict=True))
    inner = [op.operation for op in block.operations]
    for op in inner[:-1]:
        copy = op.clone(ip=ir.InsertionPoint(operation))
        _rewire(copy, known)
        known |= dict(zip(op.results, copy.results, strict=True))
    for result, value in zip(operation.results, inner[-1].operands, strict=True):
        result.replace_all_uses_with(known.get(value, value))
    operation.erase()


def _rewire(operation: Any, known: dict[Any, Any]) -> None:
    for place, value in enumerate(operation.operands):
        if value in known:
            operation.operands[place] = known[value]
    for inner in inside(operation):
        for place, value in enumerate(inner.operands):
            if value in known:
                inner.operands[place] = known[value]


def _finish(module: Any, places: list[int], names: list[str] | None = None) -> None:
    """Drop what nobody uses, and let the function say what it takes and gives."""
    ir = bindings().ir
    main = main_of(module)
    names = (input_names(main) or [f"seat {place}" for place in places]) if names is None else names
    block = main.regions[0].blocks[0]
    for op in reversed(top_operations(main)[:-1]):
        if not any(list(result.uses) for result in op.results):
            op.erase()
    for place in reversed(range(len(block.arguments))):
        if not list(block.arguments[place].uses):
            block.erase_argument(place)
            del places[place], names[place]
    given = [argument.type for argument in block.arguments]
    made = [value.type for value in top_operations(main)[-1].operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(given, made))
    for key in ("arg_attrs", "res_attrs"):
        if key in main.attributes:
            del main.attributes[key]
    whole = ir.IntegerType.get_signless(64)
    marks = [
        ir.DictAttr.get({SEAT: ir.IntegerAttr.get(whole, place), VALUE: ir.StringAttr.get(name)})
        for place, name in zip(places, names, strict=True)
    ]
    if marks:
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)


def _verified(module: Any) -> str | None:
    try:
        module.operation.verify()
    except Exception:  # noqa: BLE001 - the bindings' own
        return None
    return text_of(module)
