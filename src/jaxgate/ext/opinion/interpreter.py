"""StableHLO's reference interpreter: what a program means, computed one operation after another, without XLA.

Nothing here imports JAX: a process of its own does this work. ``tests/observe/test_interpreter.py`` fails where jaxlib has
one of these names no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

Values = np.ndarray[Any, Any]

_BITS = {1: np.uint8, 2: np.uint16}
"""How MLIR takes a float that NumPy does not have: as its bits, by bytes."""
_NARROW = {
    "bf16": "bfloat16", "f8E3M4": "float8_e3m4", "f8E4M3": "float8_e4m3", "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3FN": "float8_e4m3fn", "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
"""Floats of MLIR that NumPy cannot read: the program gives float32 instead, which holds all of their values."""
_READABLE = frozenset(
    {"i1", "f16", "f32", "f64", *(f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
_PASSES = ("func.func(chlo-legalize-to-stablehlo)", "sdy-drop-sharding-and-mesh")


class NotInterpretedError(Exception):
    """A program that the interpreter cannot run; the text says why, in one line."""


@cache
def _context() -> Any:
    """All that JAX lowers to, and the interpreter's own operations."""
    registry, context = ir.DialectRegistry(), ir.Context()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    stablehlo.register_interpreter_dialect(context)
    stablehlo.register_stablehlo_passes()
    context.load_all_available_dialects()
    return context


def parse(program: str | bytes) -> Any:
    """Read a module out of its text or its bytecode.

    Raises:
        NotInterpretedError: If it cannot be read.
    """
    try:
        return ir.Module.parse(program, context=_context())
    except Exception as error:
        raise NotInterpretedError(_first_line(error)) from error


def interpret(program: str | bytes, inputs: Sequence[Values]) -> list[Values]:
    """Run the function ``main`` of a program; one for several devices as if it were for one.

    ``inputs`` are without those that it does not use, and have random keys as their numbers. Results have the types that
    they have in the program.

    Raises:
        NotInterpretedError: If it cannot be run.
    """
    module = parse(program)
    with module.context, ir.Location.unknown():
        main = _prepare(module)
        names = [str(ir.RankedTensorType(kind).element_type) for kind in main.type.results]
        _give_readable(main)
        wanted = [ir.RankedTensorType(kind) for kind in main.type.inputs]
        if len(wanted) != len(inputs):
            raise NotInterpretedError(f"expected {len(wanted)} arguments, found {len(inputs)}")
        given = [_attribute(values, kind) for values, kind in zip(inputs, wanted, strict=True)]
        try:
            found = stablehlo.eval_module(module, given)
        except Exception as error:
            raise NotInterpretedError(_first_line(error)) from error
        return [_values(attribute, name) for attribute, name in zip(found, names, strict=True)]


def _prepare(module: Any) -> Any:
    """Leave nothing but StableHLO, for one device; gives the function ``main``."""
    for constraint in [found for found in _operations(module.operation) if found.name == "sdy.sharding_constraint"]:
        constraint.results[0].replace_all_uses_with(constraint.operands[0])
        constraint.erase()
    try:
        for each in _PASSES:
            passmanager.PassManager.parse(f"builtin.module({each})").run(module.operation)
    except Exception as error:
        raise NotInterpretedError(_first_line(error)) from error
    return next(found for found in module.body.operations if str(getattr(found, "sym_name", "")) == '"main"')


def _operations(operation: Any) -> list[Any]:
    """All operations inside one, as they stand."""
    found = []
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += [inner.operation, *_operations(inner.operation)]
    return found


def _give_readable(main: Any) -> None:
    """Let a program return float32 where NumPy could not read what it returns."""
    block = main.regions[0].blocks[0]
    back = block.operations[len(block.operations) - 1]
    kinds = []
    for place, value in enumerate(back.operands):
        kind = ir.RankedTensorType(value.type)
        name = str(kind.element_type)
        if name in _NARROW:
            kind = ir.RankedTensorType.get(kind.shape, ir.F32Type.get())
            with ir.InsertionPoint(back):
                back.operation.operands[place] = stablehlo.convert(kind, value)
        elif name not in _READABLE:
            raise NotInterpretedError(f"a result of type {name} cannot be read")
        kinds.append(kind)
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(main.type.inputs, kinds))


def _attribute(values: Values, kind: Any) -> Any:
    """An argument as MLIR takes it."""
    element = kind.element_type
    name, shape = str(element), tuple(kind.shape)
    if values.shape != shape:
        raise NotInterpretedError(f"expected an argument of shape {shape}, found {values.shape}")
    if name == "i1":  # packed bits of few values would be taken for one value that all of them have
        return ir.DenseElementsAttr.get([ir.BoolAttr.get(bool(value)) for value in values.flat], kind)
    whole = np.ascontiguousarray(values).reshape(shape)
    if name in _NARROW:
        return ir.DenseElementsAttr.get(whole.view(_BITS[whole.dtype.itemsize]), type=element, shape=shape)
    if name not in _READABLE:
        raise NotInterpretedError(f"an argument of type {name} cannot be given")
    return ir.DenseElementsAttr.get(whole, type=element, shape=shape)


def _values(attribute: Any, name: str) -> Values:
    found: Values = np.array(attribute)
    return found.astype(getattr(ml_dtypes, _NARROW[name])) if name in _NARROW else found


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line), lines[0] if lines else type(error).__name__)
