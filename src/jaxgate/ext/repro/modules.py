"""StableHLO modules as things to read and edit: parsed, printed without locations, and serialised for an older reader."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jax
import numpy as np

from jaxgate.ext.repro.model import ArrayOf

OLDEST_FORMAT = "1.17.0"
"""StableHLO that the oldest supported line, jax 0.10, reads: what is written for it runs on both."""
_TENSOR = re.compile(r"tensor<((?:\d+x)*)([^>]+>?)>")
_DTYPES = {
    "i1": "bool", "i2": "int2", "ui2": "uint2", "i4": "int4", "ui4": "uint4", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "f16": "float16",
    "bf16": "bfloat16", "f32": "float32", "f64": "float64", "complex<f32>": "complex64", "complex<f64>": "complex128",
    "f4E2M1FN": "float4_e2m1fn", "f8E3M4": "float8_e3m4", "f8E4M3": "float8_e4m3", "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3FN": "float8_e4m3fn", "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E8M0FNU": "float8_e8m0fnu",
}  # fmt: skip
"""StableHLO's names of types, and NumPy's."""


@cache
def context() -> Any:
    """A context that knows the dialects that JAX writes; the only one of this process."""
    return jax.jit(lambda: 0).lower().compiler_ir("stablehlo").operation.context


def bindings() -> Any:
    """MLIR as JAX hands it out; imported late, because Pallas comes with it."""
    import jax.extend.mlir.ir  # noqa: PLC0415 - see above

    return jax.extend.mlir


def parse(text: str) -> Any:
    """Read a module."""
    return bindings().ir.Module.parse(text, context())


def text_of(module: Any) -> str:
    """A module as text, without locations, with all numbers."""
    return str(module.operation.get_asm(enable_debug_info=False))


def portable(text: str) -> bytes:
    """Serialise a module so that the oldest supported line reads it."""
    return bytes(bindings().serialize_portable_artifact(text, OLDEST_FORMAT, True))


def without_locations(payload: bytes) -> str:
    """The text of what ``portable`` gave, without locations."""
    return text_of(bindings().deserialize_portable_artifact(payload, context()))


def main_of(module: Any) -> Any:
    """The function that a module starts with."""
    functions = (op.operation for op in module.body.operations if op.operation.name == "func.func")
    return next(one for one in functions if one.attributes["sym_name"].value == "main")


def array_types(module: Any) -> tuple[list[ArrayOf], list[ArrayOf]]:
    """Arguments and results of a module."""
    kind = main_of(module).attributes["function_type"].value
    return [array_of(one) for one in kind.inputs], [array_of(one) for one in kind.results]


def array_of(kind: Any) -> ArrayOf:
    """A ranked type of StableHLO, as shape and NumPy's name of its elements.

    Raises:
        ValueError: If it is no array of a known type.
    """
    found = _TENSOR.fullmatch(str(kind))
    if found is None or found[2] not in _DTYPES:
        raise ValueError(f"expected an array of numbers, found {kind}")
    return ArrayOf(dtype=_DTYPES[found[2]], shape=tuple(int(size) for size in found[1].split("x") if size))


def set_constant(operation: Any, numbers: np.ndarray[Any, Any]) -> None:
    """Let a constant of a module of ``context()`` have other values of its type.

    Of a type narrower than a byte give one number a byte.
    """
    ir = bindings().ir
    kind = operation.results[0].type
    bits = numbers.tobytes().hex()
    made = parse(  # as text: the bindings have no attribute of complex numbers
        f'func.func @main() -> {kind} {{ %0 = "stablehlo.constant"() {{value = dense<"0x{bits}"> : {kind}}} : () -> {kind}\n'
        f"return %0 : {kind} }}"
    )
    with ir.Location.unknown(context()):
        new = main_of(made).regions[0].blocks[0].operations[0].operation.clone(ip=ir.InsertionPoint(operation))
    operation.results[0].replace_all_uses_with(new.results[0])
    operation.erase()
