"""A small program as a function of JAX, for people; what cannot be written is not guessed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.ext.repro.model import ArrayOf
from jaxgate.ext.repro.modules import array_of, main_of, parse, text_of

_UNARY = {
    "abs": "jnp.abs", "cbrt": "jnp.cbrt", "ceil": "jnp.ceil", "cosine": "jnp.cos", "exponential": "jnp.exp",
    "exponential_minus_one": "jnp.expm1", "floor": "jnp.floor", "is_finite": "jnp.isfinite", "log": "jnp.log",
    "log_plus_one": "jnp.log1p", "logistic": "jax.nn.sigmoid", "negate": "-", "not": "~",
    "optimization_barrier": "jax.lax.optimization_barrier", "rsqrt": "jax.lax.rsqrt", "sign": "jnp.sign", "sine": "jnp.sin",
    "sqrt": "jnp.sqrt", "tan": "jnp.tan", "tanh": "jnp.tanh",
}  # fmt: skip
_BINARY = {
    "add": "+", "and": "&", "divide": "/", "multiply": "*", "or": "|", "subtract": "-", "xor": "^",
    "maximum": "jnp.maximum", "minimum": "jnp.minimum", "power": "jax.lax.pow", "remainder": "jax.lax.rem",
    "atan2": "jnp.arctan2",
}  # fmt: skip
_COMPARED = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_REDUCED = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}
_NEUTRAL = {"add": "0.000000e+00", "maximum": "0xFF800000", "minimum": "0x7F800000", "multiply": "1.000000e+00"}
_WORDS = {"true": "True", "false": "False", "0xFF800000": "-jnp.inf", "0x7F800000": "jnp.inf"}


class NotWrittenError(Exception):
    """An operation that has no line here; the text names it."""


def jax_code(text: str) -> str:
    """Write a program as a function ``f`` of its arguments.

    Raises:
        NotWrittenError: If one of its operations cannot be written.
    """
    module = parse(text)
    main = main_of(module)
    block = main.regions[0].blocks[0]
    names: dict[Any, str] = {argument: f"x{place}" for place, argument in enumerate(block.arguments)}
    lines = [f"def f({', '.join(names.values())}):"]
    for place, argument in enumerate(block.arguments):
        array = array_of(argument.type)
        lines.append(f"    # x{place}: {array.dtype}[{','.join(map(str, array.shape))}]")
    ops = [op.operation for op in block.operations]
    for op in ops[:-1]:
        if len(op.results) != 1:
            raise NotWrittenError(op.name)
        given = [names[one] for one in op.operands]
        written = _written(op, given)
        if op.name == "stablehlo.constant":
            names[op.results[0]] = written
        else:
            names[op.results[0]] = f"v{len(lines)}"
            lines.append(f"    {names[op.results[0]]} = {written}")
    back = [names[one] for one in ops[-1].operands]
    lines.append(f"    return {back[0] if len(back) == 1 else ', '.join(back)}")
    return "\n".join(lines) + "\n"


def lowered_again(code: str, inputs: list[ArrayOf]) -> str:
    """The program that the code of ``jax_code`` becomes: it must show what the program shows that it was written from."""
    scope: dict[str, Any] = {"jax": jax, "jnp": jnp}
    exec(code, scope)  # noqa: S102 - text of this module
    function: Callable[..., Any] = scope["f"]
    like = [jax.ShapeDtypeStruct(one.shape, jnp.dtype(one.dtype)) for one in inputs]
    return text_of(jax.jit(function, keep_unused=True).lower(*like).compiler_ir("stablehlo"))


def _written(op: Any, given: list[str]) -> str:
    name, text, result = op.name.removeprefix("stablehlo."), str(op), array_of(op.results[0].type)
    if name in _UNARY:
        called = _UNARY[name]
        return f"{called}{given[0]}" if len(called) == 1 else f"{called}({given[0]})"
    if name in _BINARY:
        called = _BINARY[name]
        return f"{given[0]} {called} {given[1]}" if len(called) == 1 else f"{called}({given[0]}, {given[1]})"
    if name in _OTHERS:
        return _OTHERS[name](text, result, given)
    if name == "reduce":
        return _reduction(op, text, given)
    raise NotWrittenError(op.name)


def _constant(text: str, result: ArrayOf, _: list[str]) -> str:
    found = re.search(r"dense<([^\[\"]*)> :", text)
    if found is None or (found[1].startswith("0x") and found[1] not in _WORDS):
        raise NotWrittenError("a constant of several numbers, or written in bits")
    value = _WORDS.get(found[1], f"{float(found[1]):g}" if "e" in found[1] else found[1])
    return f"jnp.full({result.shape}, {value}, '{result.dtype}')"


def _comparison(text: str, _: ArrayOf, given: list[str]) -> str:
    found = re.search(r"stablehlo\.compare (\w\w),", text)
    if found is None:
        raise NotWrittenError("stablehlo.compare")
    return f"{given[0]} {_COMPARED[found[1]]} {given[1]}"


def _product(text: str, result: ArrayOf, given: list[str]) -> str:
    dimensions = f"({_pair(text, 'contracting_dims')}, {_pair(text, 'batching_dims')})"
    return f"jax.lax.dot_general({given[0]}, {given[1]}, {dimensions}, preferred_element_type='{result.dtype}')"


def _iota(text: str, result: ArrayOf, _: list[str]) -> str:
    (dimension,) = re.findall(r"dim = (\d+)", text)
    return f"jax.lax.broadcasted_iota('{result.dtype}', {result.shape}, {dimension})"


def _reduction(op: Any, text: str, given: list[str]) -> str:
    found = re.search(r"applies stablehlo\.(\w+) across dimensions = \[([\d, ]*)\]", text)
    if found is None or found[1] not in _REDUCED:
        raise NotWrittenError(op.name)
    first = str(op.operands[1].owner)
    if _NEUTRAL[found[1]] not in first and not (found[1] == "add" and "dense<0>" in first):
        raise NotWrittenError("a reduction that begins with another number")
    axes = f"({found[2]},)" if found[2] else "()"
    return f"{given[0]}.{_REDUCED[found[1]]}(axis={axes})"


def _dims(text: str, name: str) -> str:
    found = re.search(rf"{name} = \[([\d, ]*)\]", text)
    return f"({found[1]},)" if found and found[1] else "()"


def _pair(text: str, name: str) -> str:
    found = re.search(rf"{name} = \[([\d, ]*)\] x \[([\d, ]*)\]", text)
    if found is None:
        return "((), ())"
    return f"({', '.join(f'({one},)' if one else '()' for one in found.groups())})"


_OTHERS: dict[str, Callable[[str, ArrayOf, list[str]], str]] = {
    "broadcast_in_dim": lambda text, result, given: (
        f"jax.lax.broadcast_in_dim({given[0]}, {result.shape}, {_dims(text, 'dims')})"
    ),
    "compare": _comparison,
    "constant": _constant,
    "convert": lambda _, result, given: f"{given[0]}.astype('{result.dtype}')",
    "dot_general": _product,
    "iota": _iota,
    "reshape": lambda _, result, given: f"{given[0]}.reshape({result.shape})",
    "select": lambda _text, _, given: f"jnp.where({', '.join(given)})",
    "transpose": lambda text, _, given: f"{given[0]}.transpose({_dims(text, 'dims')})",
}
"""Operations that need more than the names of their operands: their text, their result."""
