"""What one equation of a jaxpr asks for: products, communication, widenings, callbacks; with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax

from jaxgate.observe.arguments.signature import short
from jaxgate.observe.hlo.collectives import COLLECTIVES
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.source_lines import is_own_file, is_project_file, short_path

_FRAMES = 64
"""Frames that are looked through for a line of the project."""
MATMUL, COLLECTIVE, WIDENING, RANDOM, CALLBACK = "matmul", "collective", "widening", "random", "callback"

_CALLBACKS = {
    "debug_callback": "jax.debug.callback",
    "debug_print": "jax.debug.print",
    "io_callback": "io_callback",
    "pure_callback": "pure_callback",
}
_DRAWING = frozenset({"random_bits", "rng_bit_generator"})
"""Primitives that draw random bits; the last result is what they draw."""
MAIN_MEMORY = frozenset({"any", "hbm"})
"""Memory spaces of Pallas outside the fast memory beside the cores: the kernel asks for each read of these."""
ERROR_CHECK = "error check"
"""Begins the label of a callback that does nothing but raise."""
_RAISING = frozenset({"equinox._errors"})
"""Modules whose callbacks only raise: ``eqx.error_if``, which Diffrax, Lineax and Optimistix check with."""


class Item(NamedTuple):
    """One kind of work."""

    kind: str  # which count it belongs to
    label: str  # what is shown: operand shapes, or what is sent or widened
    amount: int  # FLOPs of a product, bits that are drawn; else bytes on one device


def items_of(equation: Any) -> Iterator[Item]:
    """What one equation without a body counts for."""
    name = equation.primitive.name
    if name in _PRODUCTS:
        kind = "ragged " if name.startswith("ragged_dot") else ""  # of fewer FLOPs than the product of the same arrays
        label = " x ".join(short(atom.aval) for atom in equation.invars[:2])
        yield Item(MATMUL, f"{kind}{label}", _PRODUCTS[name](equation))
        yield from _mixed(equation)
    if name.removesuffix("_start") in COLLECTIVES:
        yield from _sent(equation)
    if name in _DRAWING:
        result = equation.outvars[-1].aval
        yield Item(RANDOM, short(result), 8 * nbytes_of(result))
    if name in _CALLBACKS:
        function = _called(equation.params.get("callback"))
        check = f"{ERROR_CHECK}: " if getattr(function, "__module__", None) in _RAISING else ""
        called = getattr(function, "__name__", "")
        of = f" of {called}" if called and not called.startswith("_") else ""
        yield Item(CALLBACK, f"{check}{_CALLBACKS[name]}{of}", 1)
    yield from _widened(equation)


def _sent(equation: Any) -> Iterator[Item]:
    """One item for each array: the compiler may send several together, or not."""
    axes = equation.params.get("axes", equation.params.get("axis_name", ()))
    named = ", ".join(repr(axis) for axis in (axes if isinstance(axes, tuple) else (axes,)))
    kind = COLLECTIVES[equation.primitive.name.removesuffix("_start")]
    for source, result in zip(equation.invars, equation.outvars, strict=False):
        nbytes = max(nbytes_of(source.aval), nbytes_of(result.aval))
        yield Item(COLLECTIVE, f"{kind} {short(source.aval)} over {named}", nbytes)


def _widened(equation: Any) -> Iterator[Item]:
    """Results of a wider float type than every operand: a cast, or a product that accumulates in more bits."""
    operands = [atom.aval for atom in equation.invars]
    widest = max(operands, key=_float_bytes, default=None)
    for result in equation.outvars if operands else ():
        yield from _widening(widest, result.aval, of=result.aval)


def _mixed(equation: Any) -> Iterator[Item]:
    """A product of a narrow and a wide operand is one of wide operands: the compiler widens the narrow one for it."""
    operands = [atom.aval for atom in equation.invars[:2]]
    widest = max(operands, key=_float_bytes)
    for operand in operands:
        yield from _widening(operand, widest, of=operand)


def _widening(source: Any, wide: Any, *, of: Any) -> Iterator[Item]:
    if 0 < _float_bytes(source) < _float_bytes(wide):
        label = f"{short(source)} → {jax.numpy.dtype(wide.dtype).name}"
        yield Item(WIDENING, label, prod(of.shape) * int(wide.dtype.itemsize))


def _called(callback: Any) -> Any:
    """The Python function behind a callback."""
    while True:
        inner = getattr(callback, "callback_func", getattr(callback, "func", getattr(callback, "__wrapped__", None)))
        if inner is None or inner is callback:
            return callback
        callback = inner


def _float_bytes(aval: Any) -> int:
    """Width of a floating-point element, of a complex one of each part; 0 for all others."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None or not jax.numpy.issubdtype(dtype, jax.numpy.inexact):
        return 0
    return int(dtype.itemsize) // (2 if jax.numpy.issubdtype(dtype, jax.numpy.complexfloating) else 1)


def nbytes_of(aval: Any) -> int:
    """Bytes of an array, or of what stands for one; 0 if it has no shape or type."""
    return prod(getattr(aval, "shape", ())) * int(getattr(getattr(aval, "dtype", None), "itemsize", 0))


def _dot_flops(equation: Any) -> int:
    (contract, _), _batch = equation.params["dimension_numbers"]
    depth = prod(equation.invars[0].aval.shape[axis] for axis in contract)
    return int(2 * depth * prod(equation.outvars[0].aval.shape))


def _conv_flops(equation: Any) -> int:
    """FLOPs of a convolution, two for each multiply-add; zeros that ``lhs_dilation`` inserts between the inputs do not count."""
    kernel = equation.invars[1].aval.shape
    features = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
    zeros = prod(equation.params["lhs_dilation"])
    return int(2 * prod(equation.outvars[0].aval.shape) * prod(kernel) // (features * zeros))


def _ragged_flops(equation: Any) -> int:
    """FLOPs of rows in groups, each with a matrix of its own: every row counts once, as the groups share the rows."""
    numbers = equation.params["ragged_dot_dimension_numbers"]
    (contract, _), _batch = numbers.dot_dimension_numbers
    rows, groups = equation.invars[0].aval.shape, equation.invars[2].aval.shape[-1]
    flops = 2 * prod(rows[axis] for axis in contract) * prod(equation.outvars[0].aval.shape)
    # Where the groups divide what is summed over, the result has one matrix for each, of its own rows alone.
    return int(flops // max(groups, 1) if set(numbers.lhs_ragged_dimensions) & set(contract) else flops)


def _scaled_flops(equation: Any) -> int:
    return int(2 * equation.invars[0].aval.shape[-1] * prod(equation.outvars[0].aval.shape))


def _attention_flops(products: int, equation: Any) -> int:
    """FLOPs of cuDNN's fused attention: each of its products takes every query of every head to every key, masked or not."""
    query, key = (atom.aval.shape for atom in equation.invars[:2])
    heads_first = equation.params["layout"]
    return int(products * 2 * prod(query) * key[2 if heads_first else 1])


_PRODUCTS: dict[str, Callable[[Any], int]] = {
    "dot_general": _dot_flops,
    "conv_general_dilated": _conv_flops,
    "ragged_dot_general": _ragged_flops,
    "scaled_matmul_wrapper": _scaled_flops,
    # Scores and weighted values; backward the scores again, and gradients of weights, values, queries and keys.
    "dot_product_attention_fwd_wrapper": partial(_attention_flops, 2),
    "dot_product_attention_bwd_wrapper": partial(_attention_flops, 5),
}
"""Primitives that multiply matrices, with their FLOPs."""


def line_of(equation: Any) -> str:
    """The innermost line of the project that the equation comes from; JAX already skips its own frames.

    A layer of a library stands between: its caller is looked for where the innermost frame is no line of the project's.
    """
    for frames in (1, _FRAMES):
        for text in reversed(jax_extend().source_info_util.summarize(equation.source_info, frames).splitlines()):
            file, _, rest = text.partition(":")
            if is_own_file(file):
                return ""  # above stands whoever asked for the measurement
            if is_project_file(file):
                return f"{short_path(file)}:{rest.split(' ')[0].split(':')[0]}"
    return ""
